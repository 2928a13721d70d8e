;; A tool that never finishes being instantiated.
(module
  (memory (export "memory") 1)
  (func $start (loop $again (br $again)))
  (start $start)
  (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32) (i32.const 1024))
  (func (export "floe:tool/builtin-tool@0.1.0#definition") (result i32) unreachable)
  (func (export "floe:tool/builtin-tool@0.1.0#execute")
    (param i32 i32 i32 i32 i32 i32 i32 i32 i32 i32) (result i32) unreachable)
  (func (export "floe:tool/builtin-tool@0.1.0#permission-for") (param i32 i32) (result i32) (i32.const 0)))
