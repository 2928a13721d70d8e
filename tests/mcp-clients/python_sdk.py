"""Uses `floe mcp` as the official Python SDK does. Usage: python_sdk.py MODE FLOE [ARGUMENT...]

MODE is the SDK's: `legacy` shakes hands, `auto` takes the newest revision that the server knows, which has no handshake. Ends with status 0 and
the protocol's revision on standard output, or with the assertion that does not hold.
"""

import asyncio
import os
import sys
from pathlib import Path

from mcp import Client, StdioServerParameters
from mcp.types import ElicitResult

MODE, FLOE, *ARGUMENTS = sys.argv[1:]
# What nothing else on this machine has among its arguments.
SECONDS = f"3933.{os.getpid()}"


def client(*further, **callbacks):
    server = StdioServerParameters(command=FLOE, args=["mcp", *ARGUMENTS, *further], env=dict(os.environ))
    return Client(server, mode=MODE, **callbacks)


def text(result):
    return result.content[0].text


def runs(word):
    """Whether a process has this word among its arguments."""
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if word.encode() in process.read_bytes().split(b"\0"):
                return True
        except OSError:
            pass
    return False


async def eventually(what, condition):
    for _ in range(1500):
        if condition():
            return
        await asyncio.sleep(0.02)
    raise AssertionError(f"never: {what}")


async def calls():
    async with client() as floe:
        tools = {tool.name: tool for tool in (await floe.list_tools()).tools}
        assert tools["exec_command"].annotations.destructive_hint is True, tools
        assert tools["list"].annotations.read_only_hint is True, tools

        result = await floe.call_tool("exec_command", {"cmd": "echo one"})
        assert (text(result), result.is_error) == ("one\n", False), result
        result = await floe.call_tool("no_such_tool", {})
        assert (text(result), result.is_error) == ("Unknown tool: no_such_tool", True), result
        result = await floe.call_tool("exec_command", {})
        assert result.is_error and text(result).startswith("Missing required argument"), result

        told = []

        async def progress(characters, total, message):
            told.append(message)
            Path("go").touch()

        # The command ends only when its first line was told.
        script = "echo first; until [ -e go ]; do sleep 0.05; done; echo second"
        result = await floe.call_tool("exec_command", {"cmd": script}, progress_callback=progress)
        assert text(result) == "first\nsecond\n", result
        assert told[0] == "first\n", told

        # None ends before all have started.
        script = "touch here-{0}; until [ $(ls here-* | wc -l) = 8 ]; do sleep 0.05; done; echo {0}"
        every = (floe.call_tool("exec_command", {"cmd": script.format(number)}) for number in range(8))
        results = await asyncio.gather(*every)
        assert [text(result) for result in results] == [f"{number}\n" for number in range(8)], results

        running = asyncio.create_task(floe.call_tool("exec_command", {"cmd": f"sleep {SECONDS} & sleep {SECONDS}; wait"}))
        await eventually("it runs", lambda: runs(SECONDS))
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await eventually("it is gone after the cancel", lambda: not runs(SECONDS))

        running = asyncio.create_task(floe.call_tool("exec_command", {"cmd": f"sleep {SECONDS}"}))
        await eventually("it runs", lambda: runs(SECONDS))
        revision = floe.protocol_version
    await asyncio.gather(running, return_exceptions=True)
    await eventually("it is gone with the connection", lambda: not runs(SECONDS))
    return revision


async def questions():
    asked = []

    async def answer(context, params):
        asked.append(params.message)
        word = "allow once" if len(asked) == 1 else "deny"
        return ElicitResult(action="accept", content={"decision": word})

    async with client("--approve", "always-ask", elicitation_callback=answer) as floe:
        result = await floe.call_tool("exec_command", {"cmd": "echo allowed"})
        assert text(result) == "allowed\n", result
        result = await floe.call_tool("exec_command", {"cmd": "echo denied"})
        assert (text(result), result.is_error) == ("Tool call denied by user.", True), result
    assert "| echo allowed" in asked[0] and "| echo denied" in asked[1], asked

    async with client("--approve", "always-ask") as floe:
        result = await floe.call_tool("exec_command", {"cmd": "echo denied"})
        assert result.is_error and "--approve allow-all" in result.content[1].text, result


async def main():
    revision = await calls()
    await questions()
    print(revision)


asyncio.run(main())
