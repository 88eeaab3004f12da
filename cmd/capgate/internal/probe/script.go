package probe

// ompRecorder is an extension that records the ends of calls, of which the hook is not told.
const ompRecorder = `import { appendFileSync } from "node:fs";

export default function recorder(pi: any): void {
	pi.on("tool_result", async (event: any, ctx: any) => {
		try {
			const payload = {
				hook_event_name: "tool_result",
				session_id: ctx.sessionManager.getSessionId(),
				tool_name: event.toolName,
				tool_use_id: event.toolCallId,
				tool_input: event.input,
				tool_response: event.content,
				is_error: event.isError === true,
			};
			appendFileSync("@CALLS@", JSON.stringify({ time: new Date().toISOString(), payload }) + "\n");
		} catch {}
		return undefined;
	});
}
`

const manners = `This is a check by the person at this machine of how this client treats its hooks, made with the program capgate probe.
Do exactly the numbered steps, in this order, and nothing else. Every command is a harmless echo. That some of them are
blocked, denied or changed is what is being checked: never repeat such a step or look for a way around it, go on with the
next one.
`

// ClaudePrompt asks Claude Code to do the steps of the probe.
const ClaudePrompt = `[PROGRAM:capgate-probe] ` + manners + `
1. Start one subagent with the Agent tool (in older versions: Task), subagent_type general-purpose, not in the background,
   and give it as its prompt everything between the two lines of dashes, word for word:
------
[PROGRAM:capgate-probe-sub] ` + manners + `
1. Run with the Bash tool: echo capgate-probe-exit2
2. Run with the Bash tool: echo capgate-probe-deny
3. Run with the Bash tool: echo capgate-probe-rewrite
4. Run with the Bash tool: echo capgate-probe-pass
5. Answer with the word done.

One call for each step, one after the other, each command exactly as it is written here.
------
2. When the subagent has ended, run with the Bash tool, yourself: echo capgate-probe-ask
3. Answer with the word done.
`

// OMPPrompt asks Oh My Pi to do them.
const OMPPrompt = `[PROGRAM:capgate-probe] ` + manners + `
1. Start one agent with the task tool (agent: task), and give it as its task everything between the two lines of dashes,
   word for word:
------
[PROGRAM:capgate-probe-sub] ` + manners + `
1. Run with the bash tool: echo capgate-probe-deny
2. Run with the bash tool: echo capgate-probe-pass
3. Finish, with the word done as your result.

One call for each step, one after the other, each command exactly as it is written here.
------
2. Wait until it has finished, with the hub tool (op: wait).
3. Start one more agent with the task tool (agent: task), with this task: [PROGRAM:capgate-probe-spawned] Finish at once,
   with the word capgate-probe-spawn as your result.
4. Answer with the word done.
`
