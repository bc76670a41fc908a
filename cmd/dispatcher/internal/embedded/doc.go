// Package embedded starts, inside this process, what a real installation has outside:
// so far Kafka. It serves `demo`, `run --embedded` and tests.
//
// The Kafka is kfake: one broker on loopback that speaks the real protocol, so any
// client can connect, and that keeps its data on disk. It is one process's and has no
// replicas; it is for trying things out and not for production.
package embedded
