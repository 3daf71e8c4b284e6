import { expect, test } from 'vitest'
import { HoldfastError, StaleTokenError, TokenFloor } from '../../src/index.js'

test('a floor lets higher and equal tokens pass, and rises with them', () => {
  const floor = new TokenFloor('the report')
  expect(floor.floor).toBe(0)
  for (const token of [1, 1, 4, 4, 9]) {
    floor.pass(token)
    expect(floor.floor).toBe(token)
  }
})

test('a floor refuses what is lower, and says who was there', () => {
  const floor = new TokenFloor('the report')
  floor.pass(5)
  const attempt = () => floor.pass(4)
  expect(attempt).toThrow(StaleTokenError)
  expect(attempt).toThrow(HoldfastError)
  expect(attempt).toThrow(
    expect.objectContaining({
      code: 'HOLDFAST_STALE_TOKEN',
      resource: 'the report',
      token: 4,
      floor: 5,
      lock: undefined,
      message: "The token 4 is stale: 'the report' has seen 5",
    }),
  )
  expect(floor.floor).toBe(5)
})

test.for([undefined, '5', NaN, 0, -3, 1.5, Infinity, 2 ** 53])('%s is no token', (token) => {
  const floor = new TokenFloor('the report')
  expect(() => floor.pass(token as number)).toThrow(/A token must be/)
  expect(floor.floor).toBe(0)
})
