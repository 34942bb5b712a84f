// Package contacts defines the contact resource of the API: its routes, request bodies and
// views. Package httpapi does the rest.
//
// It owns the names of members and routes. The validation rules belong to the domain and
// are read from there, also for the OpenAPI document.
package contacts
