// Package contacts is what clients of the API see of a contact: its routes, the bodies that
// they take and the views that they answer with. The rest is package httpapi's.
//
// It owns the names of members and routes. The rules of a contact are the domain's and are
// read from there, also for the OpenAPI document.
package contacts
