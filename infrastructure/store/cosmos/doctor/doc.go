// Package doctor examines Cosmos DB for an operator.
//
// The containers and the roles that each process needs are declared here (containers.go,
// roles.go), because a process verifies them at its start and the doctor examines the same.
package doctor
