//! Between the contract and a [`Tool`]: what [`export!`](crate::export) calls.

use crate::bindings::exports::floe::tool::builtin_tool::Guest;
use crate::bindings::floe::tool::types::{
    ExecutionContext, Permission, ToolDefinition, ToolResult,
};
use crate::{Context, Failure, Outcome, Tool, arguments, output, schema};
use std::marker::PhantomData;

/// A tool as the contract sees it.
#[doc(hidden)]
pub struct Exported<T>(PhantomData<T>);

impl<T: Tool> Guest for Exported<T> {
    fn definition() -> ToolDefinition {
        T::definition().into_record(schema::schema_of::<T::Arguments>().to_string())
    }

    fn execute(arguments: String, context: ExecutionContext) -> Result<ToolResult, Failure> {
        let outcome = match arguments::parse::<T>(&arguments) {
            Ok(arguments) => T::run(arguments, &Context::from(context))?,
            Err(message) => Outcome::failed(message),
        };
        let (text, result) = outcome.into_result();
        if let Some(text) = text {
            output::write(&text);
        }
        Ok(result)
    }

    fn permission_for(arguments: String) -> Permission {
        let least = T::definition().least_permission();
        match arguments::parse::<T>(&arguments) {
            Ok(arguments) => T::permission_for(&arguments).max(least),
            Err(_) => least,
        }
    }
}

/// Makes a [`Tool`] the tool of this component. Call it once, in a crate of type `cdylib`.
///
/// On other targets than wasm32 it only checks the types, so that `cargo test` runs natively.
#[macro_export]
macro_rules! export {
    ($tool:ty) => {
        const _: () = {
            #[allow(dead_code)]
            type Component = $crate::Exported<$tool>;
            #[allow(dead_code)]
            fn is_a_tool<T: $crate::Tool>() {}
            let _ = is_a_tool::<$tool>;
            #[cfg(target_arch = "wasm32")]
    $crate::bindings::export_component!(Component with_types_in $crate::bindings);
        };
    };
}
