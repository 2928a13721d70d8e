;; A tool whose `execute` returns a string. Its world is wrong-types.wit.
(module
  (memory (export "memory") 1)
  (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32) (i32.const 1024))
  (func (export "floe:tool/builtin-tool@0.1.0#definition") (result i32) unreachable)
  (func (export "floe:tool/builtin-tool@0.1.0#execute") (param i32 i32) (result i32) unreachable)
  (func (export "floe:tool/builtin-tool@0.1.0#permission-for") (param i32 i32) (result i32) (i32.const 0)))
