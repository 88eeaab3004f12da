// A host on the Agent SDK: it makes one query, says what it was asked meanwhile, and what came of it, as JSON.
const [module, claude, text] = process.argv.slice(2);
const { query } = await import(module);
const q = JSON.parse(text);

const asked = [];
const options = {
	cwd: process.cwd(),
	env: process.env,
	pathToClaudeCodeExecutable: claude,
	settingSources: q.sources,
	allowedTools: q.allowed,
	...(q.mode && { permissionMode: q.mode, allowDangerouslySkipPermissions: q.mode === "bypassPermissions" }),
	...(q.answer && {
		canUseTool: async (tool, input, { decisionReason }) => {
			asked.push({ tool, input, reason: decisionReason ?? "" });
			return q.answer === "allow" ? { behavior: "allow", updatedInput: input } : { behavior: "deny", message: "the host says no" };
		},
	}),
};
const found = { asked, result: "", session: "" };
for await (const message of query({ prompt: q.prompt, options })) {
	if (message.type === "result") {
		found.result = message.result ?? message.subtype;
		found.session = message.session_id;
	}
}
console.log(JSON.stringify(found));
