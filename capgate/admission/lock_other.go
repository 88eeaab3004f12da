//go:build !unix

package admission

import (
	"context"
	"errors"
	"fmt"
)

// lock fails: without flock, exactly as many spawns as were admitted cannot be promised, so none is.
func lock(context.Context, string) (unlock func(), err error) {
	return nil, fmt.Errorf("admitting beforehand needs flock: %w", errors.ErrUnsupported)
}
