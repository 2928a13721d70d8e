;; A tool whose answers lie outside its memory.
(module
  (memory (export "memory") 1)
  (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32) (i32.const -8))
  (func (export "floe:tool/builtin-tool@0.1.0#definition") (result i32) (i32.const -64))
  (func (export "floe:tool/builtin-tool@0.1.0#execute")
    (param i32 i32 i32 i32 i32 i32 i32 i32 i32 i32) (result i32) (i32.const -64))
  (func (export "floe:tool/builtin-tool@0.1.0#permission-for") (param i32 i32) (result i32) (i32.const 0)))
