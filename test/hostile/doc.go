// Package hostile attacks real nodes: a peer that speaks the raw protocols of
// package p2p and keeps to none of their rules, and a client that does the same
// to the API. Its tests hold docs/threat-model.md to what it says of floods,
// forged frames and slow connections.
package hostile
