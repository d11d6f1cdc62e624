// Package monitor follows a run of consensus vote by vote, and reports votes that the rules forbid (docs/protocol.md,
// P7 to P15 and P25).
//
// It is the model of package quorum/model for runs of any length. The model explores all states of small worlds and
// finds no fork; its tests compare every step that the model allows with every vote that a monitor accepts, in random
// walks through those states. So a run that a monitor accepts is a run of the model.
//
// As in the model a certificate exists as soon as votes of enough weight do, and liars are taken to have signed
// everything from the start. A monitor sees votes and no messages, and it uses none of the code that counts votes.
package monitor
