/** Whether all of these are methods of the object. */
export function hasMethods(value: object, names: readonly string[]): boolean {
  return names.every((name) => typeof Reflect.get(value, name) === 'function')
}
