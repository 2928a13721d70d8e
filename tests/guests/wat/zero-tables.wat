;; A tool whose tables hold nothing: `execute` calls through one of them.
(module
  (type $nothing (func))
  (memory (export "memory") 1)
  (table $empty 0 0 funcref)
  (table $other 0 funcref)
  (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32) (i32.const 1024))
  (func (export "floe:tool/builtin-tool@0.1.0#definition") (result i32) unreachable)
  (func (export "floe:tool/builtin-tool@0.1.0#execute")
    (param i32 i32 i32 i32 i32 i32 i32 i32 i32 i32) (result i32)
    (call_indirect $empty (type $nothing) (i32.const 0))
    unreachable)
  (func (export "floe:tool/builtin-tool@0.1.0#permission-for") (param i32 i32) (result i32)
    ;; No permission has this number.
    (i32.const 99)))
