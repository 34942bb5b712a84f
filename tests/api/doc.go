// Package api tests the contacts API as a process: acknowledged changes must survive kill -9.
package api
