// capgate's gate for Oh My Pi, written by `capgate install --client omp`. It puts every tool call, of the main agent and
// of subagents, before the hook program and does what that says. Where the hook cannot be asked, the call is blocked.
//
// Measured on Oh My Pi 18.1.21:
// - The main agent and all its subagents live in one process. A subagent has a session id of its own and no UI; its
//   ctx.localProtocolOptions.getSessionId() is the main session's id, at any depth, also with --no-session and for
//   agents that eval code starts. Only an agent that is revived from an earlier process has its own id there. Among its
//   entries is a session_init, which names the agent's type.
// - A call that is nested in another one, by `write xd://TOOL` or `tool.NAME()` in eval code, has a tool_call of its own.
// - The client fills in the agent of a task before tool_call, and blocks itself where a handler throws or takes 30 s
//   (dialogs do not count).
// - Extensions that are given by -e are not loaded into revived agents, and none at all into subagents of plan mode.

import { spawn } from "node:child_process";
import { accessSync, constants, readFileSync } from "node:fs";
import { delimiter, dirname, isAbsolute, join } from "node:path";
import { fileURLToPath } from "node:url";

// The hook. A name alone stands in a project, which others have as well: it is looked for on PATH and where install puts it.
const HOOK: string = "@HOOK@";
const ENV: Record<string, string> = {};
// The settings of this installation, read by the hook at each call. A relative path begins in the project.
const ENV_FILE: string = "";

interface Entry {
	type: string;
	agent?: unknown;
}
interface Context {
	hasUI: boolean;
	cwd: string;
	ui: { confirm(title: string, message: string): Promise<boolean> };
	sessionManager: { getSessionId(): string; getEntries(): Entry[] };
	localProtocolOptions?: { getSessionId?: () => string | null };
}
interface ToolCall {
	toolName: string;
	toolCallId: string;
	input: unknown;
}
interface API {
	on(event: "session_start", handler: (event: unknown, ctx: Context) => Promise<void>): void;
	on(event: "tool_call", handler: (event: ToolCall, ctx: Context) => Promise<Blocked | undefined>): void;
}
interface Blocked {
	block: true;
	reason: string;
}
type Answer =
	| { outcome: "pass" }
	| { outcome: "deny"; reason: string }
	| { outcome: "ask"; title: string; message: string };

const NO_UI = "Spawning subagents requires explicit user approval in an interactive OMP session.";
const REFUSED =
	"User did not approve the subagent spawn. Continue in the current agent or ask again only if delegation is necessary.";
const NO_UI_OTHER = "This call requires explicit user approval in an interactive OMP session.";
const REFUSED_OTHER = "User did not approve this call. Continue without it.";

const env = { ...process.env, ...ENV };

const hookProgram = isAbsolute(HOOK) ? HOOK : search(HOOK);
const envFile =
	ENV_FILE && !isAbsolute(ENV_FILE) ? join(dirname(fileURLToPath(import.meta.url)), "..", "..", ENV_FILE) : ENV_FILE;

// search finds a program, or "" where there is none: then a project's extension judges nothing, since whoever works there
// without capgate has to be able to.
function search(name: string): string {
	const data = process.env.XDG_DATA_HOME || join(process.env.HOME || "/", ".local", "share");
	for (const dir of [...(process.env.PATH ?? "").split(delimiter), join(data, "capgate", "bin")]) {
		const file = join(dir, process.platform === "win32" ? `${name}.exe` : name);
		try {
			accessSync(file, constants.X_OK);
			if (isAbsolute(file)) return file;
		} catch {} // not there
	}
	return "";
}

// A little over the hook's own deadline, and less than the 30 s after which the client would block in its own words.
const deadline = Number(envFile ? deadlineIn(envFile) : env.CAPGATE_DEADLINE_MS);
const timeout = Math.min((deadline > 0 ? deadline : 2000) + 1000, 25_000);

// deadlineIn finds the deadline in the environment file, as it was when the client started.
function deadlineIn(file: string): string | undefined {
	try {
		return /^\s*CAPGATE_DEADLINE_MS\s*=\s*["']?(\d+)["']?\s*$/m.exec(readFileSync(file, "utf8"))?.[1];
	} catch {
		return undefined; // the hook will say so
	}
}

// The most that an answer may have, in characters: a reason has at most 2,000.
const LONGEST_ANSWER = 1 << 20;

// The session that came first in this process, which is the main one, for agents that are revived from an earlier
// process: the client gives them no other way to the session they belong to, and a copy of this module of their own.
const FIRST = Symbol.for("capgate.first-session");
const shared = globalThis as unknown as Record<symbol, Context["sessionManager"] | undefined>;

export default function capgate(pi: API): void {
	if (!hookProgram) return;
	pi.on("session_start", async (_event, ctx) => {
		shared[FIRST] ??= ctx.sessionManager;
		if (!ctx.sessionManager.getEntries().some(entry => entry.type === "session_init")) {
			// The client's shell inherits it: so a loop finds the same state as the hook, and the session to arm.
			Object.assign(process.env, ENV, { CAPGATE_SESSION_ID: ctx.sessionManager.getSessionId() });
		}
	});
	pi.on("tool_call", async (event, ctx) => {
		try {
			return await carryOut(await ask(payload(event, ctx)), event, ctx);
		} catch (error) {
			const what = error instanceof Error ? error.message : String(error);
			return block(
				`capgate: this call is blocked because the hook could not judge it: ${what}. Do not retry: go on without this tool, ` +
					"and tell the user that an operator has to look, beginning with `capgate doctor`.",
			);
		}
	});
}

function block(reason: string): Blocked {
	return { block: true, reason };
}

function payload(event: ToolCall, ctx: Context): string {
	const own = ctx.sessionManager.getSessionId();
	const init = ctx.sessionManager.getEntries().find(entry => entry.type === "session_init");
	let session = ctx.localProtocolOptions?.getSessionId?.() || own;
	if (init && session === own) session = shared[FIRST]?.getSessionId() || own;
	return JSON.stringify({
		session_id: session,
		tool_name: event.toolName,
		tool_use_id: event.toolCallId,
		tool_input: event.input,
		has_ui: ctx.hasUI === true,
		cwd: ctx.cwd,
		agent_id: own === session ? undefined : own,
		agent_type: init?.agent,
	});
}

// ask runs the hook on one call. Whatever is not an answer is an error.
function ask(call: string): Promise<Answer> {
	return new Promise((resolve, reject) => {
		let out = "";
		let err = "";
		const hook = spawn(hookProgram, ["--client", "omp", ...(envFile ? ["--env-file", envFile] : [])], { env, stdio: ["pipe", "pipe", "pipe"], windowsHide: true });
		const give = (settle: () => void): void => {
			clearTimeout(timer);
			hook.kill("SIGKILL"); // it may be in the middle of something; once it has ended this does nothing
			settle();
		};
		const timer = setTimeout(
			() => give(() => reject(new Error(`${hookProgram} has not answered within ${timeout} ms`))),
			timeout,
		);
		hook.on("error", error => give(() => reject(new Error(`${hookProgram} cannot be run: ${error.message}`))));
		hook.stdin.on("error", () => {}); // it may answer without having read everything
		hook.stdout.setEncoding("utf8").on("data", text => {
			out += text;
			if (out.length > LONGEST_ANSWER) give(() => reject(new Error(`${hookProgram} does not stop answering`)));
		});
		hook.stderr.setEncoding("utf8").on("data", text => {
			err = (err + text).slice(0, 300);
		});
		hook.on("close", (code, signal) =>
			give(() => {
				if (code !== 0) {
					const said = err.trim() ? `, saying ${JSON.stringify(err.trim())}` : "";
					reject(new Error(`${hookProgram} ended with ${signal ?? `status ${code}`}${said}`));
					return;
				}
				const answer = read(out);
				if (answer) resolve(answer);
				else reject(new Error(`${hookProgram} gave no verdict but ${JSON.stringify(out.slice(0, 200))}`));
			}),
		);
		hook.stdin.end(call);
	});
}

// read returns the hook's answer, or undefined where it is not exactly one.
function read(text: string): Answer | undefined {
	let answer: Record<string, unknown>;
	try {
		answer = JSON.parse(text);
	} catch {
		return undefined;
	}
	switch (answer?.outcome) {
		case "pass":
			return { outcome: "pass" };
		case "deny":
			if (typeof answer.reason === "string" && answer.reason) return { outcome: "deny", reason: answer.reason };
			return undefined;
		case "ask":
			if (typeof answer.title === "string" && answer.title && typeof answer.message === "string")
				return { outcome: "ask", title: answer.title, message: answer.message };
			return undefined;
	}
	return undefined;
}

async function carryOut(answer: Answer, event: ToolCall, ctx: Context): Promise<Blocked | undefined> {
	const spawns = event.toolName === "task";
	switch (answer.outcome) {
		case "pass":
			return undefined;
		case "deny":
			return block(answer.reason);
		case "ask":
			if (!ctx.hasUI) return block(spawns ? NO_UI : NO_UI_OTHER);
			if ((await ctx.ui.confirm(answer.title, answer.message)) === true) return undefined;
			return block(spawns ? REFUSED : REFUSED_OTHER);
	}
}
