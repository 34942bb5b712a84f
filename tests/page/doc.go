// Package page tests the operations page in a real browser.
package page
