// Access to records by untrusted names: of servers, clients, files, addresses. A name such as
// "constructor" or "__proto__" must not reach inherited properties.

/** Returns the record's own property with this name, or undefined. */
export function own<T>(record: Readonly<Record<string, T>> | undefined, name: string | undefined): T | undefined {
  return record !== undefined && name !== undefined && Object.hasOwn(record, name) ? record[name] : undefined;
}

/** Sets the record's own property with this name, even "__proto__". */
export function setOwn<T>(record: Record<string, T>, name: string, value: T): void {
  Object.defineProperty(record, name, { value, enumerable: true, configurable: true, writable: true });
}
