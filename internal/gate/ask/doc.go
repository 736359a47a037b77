// Package ask holds calls until a user approves them. A Question is what the user is asked, a Lease
// approves calls of a kind for some time, and Waiter blocks the call until the store has an answer.
//
// Guarantees:
//   - The key of a call changes with anything that the user saw or could have seen.
//   - A call continues only when the store confirms that an approval of this call was used, once, or
//     that a lease covers it. Memory decides nothing, so restarts and other instances change nothing.
//   - The first answer counts, and no answer outlives its time.
//   - Whatever cannot be read or stored refuses. Waiting calls are bounded in number and time.
//
// It does not decide which calls need an approval (policy does), and shows no question (ops does).
package ask
