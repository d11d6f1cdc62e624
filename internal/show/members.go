package show

import "fmt"

// Member is a node of a network that was started here.
type Member struct {
	Name, Peer, API, Dir string
	Log                  string // file, if it has one
}

// Members writes the nodes of a network whose first block since the start is
// final, and what to try next.
func (p Printer) Members(members []Member, height uint64, key string) error {
	rows := [][]string{{"NODE", "PEER", "API", "DATA"}}
	if len(members) > 0 && members[0].Log != "" {
		rows[0] = append(rows[0], "LOG")
	}
	for _, m := range members {
		r := []string{m.Name, m.Peer, m.API, m.Dir}
		if m.Log != "" {
			r = append(r, m.Log)
		}
		rows = append(rows, r)
	}
	fmt.Fprintln(p.Out)
	if err := p.table(rows...); err != nil {
		return err
	}
	_, err := fmt.Fprintf(p.Out, `
ready: block %d is final, and %s is set. In another terminal, try

  aweigh put %s "hello, world"
  aweigh why %s
  aweigh status

Ctrl-C stops it.
`, height, key, key, key)
	return err
}
