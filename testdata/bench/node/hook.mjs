// The cap's decision as a Node hook would make it: the same steps as capgate-hook, with the usage in a JSON file
// instead of a ledger. It is here to be timed, not to be used.
import fs from 'node:fs';
import path from 'node:path';

const env = process.env;
if (env.CAPGATE_DISABLE === '1' || env.CAPGATE_DISABLE_CAP === '1' || env.CAPGATE_ENABLED !== '1') process.exit(0);
let call;
try {
  call = JSON.parse(fs.readFileSync(0, 'utf8'));
} catch {
  process.exit(0);
}
if (!['WebSearch', 'WebFetch', 'Agent', 'Task', 'Workflow'].includes(call.tool_name)) process.exit(0);
if (!/^[A-Za-z0-9_-][A-Za-z0-9._-]{0,127}$/.test(call.session_id ?? '')) process.exit(0);
const state = env.CAPGATE_DATA_DIR;
let marker;
try {
  marker = JSON.parse(fs.readFileSync(path.join(state, 'trekresearch-loop-scope', call.session_id + '.json'), 'utf8'));
} catch (e) {
  process.exit(e.code === 'ENOENT' ? 0 : 2);
}
if (Date.now() - Date.parse(marker.startedAt) > 21600000) process.exit(0);
const usage = JSON.parse(fs.readFileSync(path.join(state, 'usage.json'), 'utf8'))[marker.runId];
if (usage.used >= usage.limit) {
  console.error(`turn budget spent (${usage.used} of ${usage.limit}, run ${marker.runId})`);
  process.exit(2);
}
