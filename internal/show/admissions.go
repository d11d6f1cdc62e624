package show

import (
	"fmt"
	"strconv"
	"time"

	"github.com/aweigh/aweigh/node"
)

// Ticket is an invite with its name.
type Ticket struct {
	Name string `json:"name"`
	node.Ticket
}

// Observer is an observer with its peer ID.
type Observer struct {
	Peer string `json:"peer"`
	node.Observer
}

// Admissions are the invites of a network, and the observers that are admitted.
type Admissions struct {
	Invites   []Ticket   `json:"invites"`
	Observers []Observer `json:"observers"`
}

// Admissions writes them.
func (p Printer) Admissions(all Admissions, now time.Time) error {
	if p.Format == JSON {
		all.Invites, all.Observers = append([]Ticket{}, all.Invites...), append([]Observer{}, all.Observers...)
		return p.JSON(all)
	}
	rows := [][]string{{"INVITE", "LEFT", "UNTIL"}}
	for _, x := range all.Invites {
		until := x.Until.Format(time.RFC3339)
		if now.After(x.Until) {
			until += ", over"
		}
		rows = append(rows, []string{x.Name, strconv.Itoa(x.Left), until})
	}
	if err := p.table(rows...); err != nil {
		return err
	}
	if _, err := fmt.Fprintln(p.Out); err != nil {
		return err
	}
	rows = [][]string{{"OBSERVER", "NAME", "INVITE", "ADMITTED"}}
	for _, x := range all.Observers {
		rows = append(rows, []string{x.Peer, x.Observer.Name, x.Invite, x.Admitted.Format(time.RFC3339)})
	}
	return p.table(rows...)
}
