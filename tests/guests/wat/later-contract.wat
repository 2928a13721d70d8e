;; A tool for a version of the contract that does not exist yet. Its world is later-contract.wit.
(module
  (memory (export "memory") 1)
  (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32) (i32.const 1024))
  (func (export "floe:tool/builtin-tool@0.2.0#execute") (param i32 i32) (result i32) unreachable))
