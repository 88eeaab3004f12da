package live

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// SDKVersion is the pinned Agent SDK, which brings the client of [ClaudeVersion] with it.
const SDKVersion = "0.3.332"

const sdkPackage = "@anthropic-ai/claude-agent-sdk"

// InstallSDK returns the folder of the pinned Agent SDK in the cache folder, and installs it there first where it is not.
func InstallSDK(ctx context.Context, cache string) (string, error) {
	dir := filepath.Join(cache, "sdk-"+SDKVersion)
	whole := func(dir string) error {
		_, err := os.Stat(filepath.Join(dir, "node_modules", filepath.FromSlash(sdkPackage), "sdk.mjs"))
		return err
	}
	if whole(dir) == nil {
		return dir, nil
	}
	if err := npmInstall(ctx, cache, dir, whole, sdkPackage+"@"+SDKVersion); err != nil {
		return "", fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	if err := whole(dir); err != nil {
		return "", fmt.Errorf("%w: installed, but %w", ErrUnavailable, err)
	}
	return dir, nil
}

// SDKRun is one query of a host that is written with the Agent SDK.
type SDKRun struct {
	Prompt       string   `json:"prompt"`
	AllowedTools []string `json:"allowed"`
	Sources      []string `json:"sources"` // whose settings count
	Mode         string   `json:"mode,omitempty"`
	// Answer is what the host says when it is asked (canUseTool): "allow" or "deny"; "" = it cannot be asked.
	Answer string `json:"answer,omitempty"`
}

// SDKResult is what came of it.
type SDKResult struct {
	Asked []struct { // each question that reached the host
		Tool   string          `json:"tool"`
		Input  json.RawMessage `json:"input"`
		Reason string          `json:"reason"`
	} `json:"asked"`
	Result  string `json:"result"`
	Session string `json:"session"`
}

//go:embed sdkhost.mjs
var sdkHost []byte

// SDK runs a query by the host in sdkhost.mjs, with the SDK below dir.
func (s *Sandbox) SDK(ctx context.Context, dir string, r SDKRun) (SDKResult, error) {
	node, err := exec.LookPath("node")
	if err != nil {
		return SDKResult{}, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	host := filepath.Join(s.Home, "host.mjs")
	if err := os.WriteFile(host, sdkHost, 0o600); err != nil {
		return SDKResult{}, err
	}
	query, err := json.Marshal(r)
	if err != nil {
		return SDKResult{}, err
	}
	module := filepath.Join(dir, "node_modules", filepath.FromSlash(sdkPackage), "sdk.mjs")
	out, err := s.run(ctx, s.Environ(), node, host, module, s.Clients.Claude, string(query))
	if err != nil {
		return SDKResult{}, err
	}
	started("Agent SDK", headless)
	var result SDKResult
	if err := json.Unmarshal([]byte(out.Stdout), &result); err != nil {
		return result, fmt.Errorf("no JSON result (exit %d): %w: stdout %q stderr %q", out.Exit, err, tail(out.Stdout, 500), tail(out.Stderr, 500))
	}
	return result, nil
}
