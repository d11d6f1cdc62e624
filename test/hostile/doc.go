// Package hostile attacks real nodes: a peer that uses the raw protocols of
// package p2p and breaks their rules, and a client that does the same to the
// API. Its tests check the statements of docs/threat-model.md about floods,
// forged frames and slow connections.
package hostile
