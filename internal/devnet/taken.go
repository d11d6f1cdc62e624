package devnet

import (
	"errors"
	"fmt"

	"github.com/aweigh/aweigh/store/diskstore"
)

// ErrTaken means that another process uses the store or the port of a node of this devnet.
var ErrTaken = errors.New("devnet: another process uses a node of this devnet")

// Free reports which node another process runs, as one of an earlier devnet may: it would answer in the place of the
// node that is to start. Call it before Run and RunProcesses.
func (n *Network) Free() error {
	for _, x := range n.Nodes {
		if pid := diskstore.Holder(x.Home.Store()); pid != 0 {
			return fmt.Errorf("%w: %s: process %d holds %s; stop it, or choose another --data-dir", ErrTaken, x.Name, pid, x.Home)
		}
		if err := Free(x.API); err != nil {
			return fmt.Errorf("%w: %s: %w; stop it, or choose another --data-dir", ErrTaken, x.Name, err)
		}
	}
	return nil
}
