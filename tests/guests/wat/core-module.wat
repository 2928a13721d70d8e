;; No component at all.
(module (func (export "definition")))
