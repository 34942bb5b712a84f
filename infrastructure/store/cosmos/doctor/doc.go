// Package doctor examines Cosmos DB for an operator.
//
// The containers and the roles that each process needs are declared here (containers.go,
// roles.go), because the start of a process verifies the same that the doctor examines.
package doctor
