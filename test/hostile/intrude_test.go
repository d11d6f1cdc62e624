package hostile

import (
	"context"
	"errors"
	"fmt"
	"strings"

	aweighv1 "github.com/aweigh/aweigh/api/aweigh/v1"
	"github.com/aweigh/aweigh/client"
	"github.com/aweigh/aweigh/scope"
)

// localEnv names a socket for the process that a test starts as another user of the machine.
const localEnv = "HOSTILE_LOCAL_SOCKET"

// intrude asks for everything at a node's socket, and prints what it gets, one line for each.
func intrude(path string) int {
	c, err := client.Dial("unix://" + path)
	if err != nil {
		fmt.Println(err)
		return 2
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	_, read := c.Get(ctx, []byte("/a"))
	_, wrote := c.Put(ctx, &aweighv1.PutRequest{Key: []byte("/a"), Value: []byte("mine")})
	_, looked := c.Status(ctx)
	_, governed := c.Govern(ctx, scope.Decision{}, nil)
	_, disabled := c.DisableUsers(ctx, nil)
	for _, err := range []error{read, wrote, looked, governed, disabled} {
		kind := "served"
		switch {
		case errors.Is(err, client.ErrDenied):
			kind = "denied"
		case errors.Is(err, client.ErrUnreachable) && strings.Contains(err.Error(), "is for the user that runs the node"):
			kind = "kept out"
		}
		fmt.Printf("%s: %v\n", kind, err)
	}
	return 0
}
