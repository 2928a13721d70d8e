"""The echo tool in Python, for componentize-py."""

import json

from wit_world import exports
from wit_world.imports import output, workspace
from wit_world.imports.types import (
    ModelClass,
    Permission,
    ToolDefinition,
    ToolResult,
)

PARAMETERS = {
    "type": "object",
    "properties": {"text": {"type": "string"}, "path": {"type": "string"}},
    "required": ["text"],
    "additionalProperties": False,
}


class BuiltinTool(exports.BuiltinTool):
    def definition(self) -> ToolDefinition:
        return ToolDefinition(
            name="echo_python",
            aliases=[],
            description="Echoes a text and counts the entries of a folder.",
            parameters=json.dumps(PARAMETERS),
            permission=Permission.READ_ONLY,
            permission_varies=False,
            for_model=ModelClass.ANY,
            timeout_ms=None,
            max_output_length=None,
            truncation=None,
            output_schema=None,
            metadata=[],
        )

    def execute(self, arguments, context) -> ToolResult:
        given = json.loads(arguments)
        output.write("echo: ")
        output.write(given["text"])
        output.write("\n")
        # A failure of the host passes as it is.
        entries = workspace.list_directory(given.get("path", "."))
        names = [entry.path for entry in entries]
        return ToolResult(
            stop_reason=None,
            note=f"[{len(names)} entries]",
            images=[],
            structured=json.dumps({"entries": names}),
            metadata=[],
        )

    def permission_for(self, arguments) -> Permission:
        return Permission.READ_ONLY
