//! The `openai:` driver: Chat Completions, streamed, at any base URL. Services differ in many small ways (llama.cpp, vLLM, Ollama,
//! gateways); what they send is read leniently, and what is sent to them is the smallest common form.

mod answer;
mod calls;
mod chunk;
mod driver;
mod failure;
mod request;
mod transport;

pub use driver::OpenAiDriver;
