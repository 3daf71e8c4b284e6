import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    pool: 'forks',
    maxWorkers: 2,
    testTimeout: 30_000,
    hookTimeout: 30_000,
    // A test that fails now and then is a bug report.
    retry: 0,
    allowOnly: false,
    projects: [
      {
        extends: true,
        resolve: { alias: { holdfast: fileURLToPath(new URL('src/index.ts', import.meta.url)) } },
        test: {
          name: 'holdfast',
          include: ['test/**/*.test.ts'],
          exclude: ['test/package/**', 'test/interop/**', 'test/postgres/**'],
        },
      },
      // A real PostgreSQL, where it can be had.
      { extends: true, test: { name: 'postgres', include: ['test/postgres/**/*.test.ts'] } },
      // Redisson itself, where Java and Maven are there.
      {
        extends: true,
        test: {
          name: 'interop',
          include: ['test/interop/**/*.test.ts'],
          testTimeout: 60_000,
          maxConcurrency: 8,
        },
      },
      // Takes `holdfast` from the packed tarball.
      {
        extends: true,
        test: {
          name: 'package',
          include: ['test/package/**/*.test.ts'],
          globalSetup: 'test/package/build.ts',
          testTimeout: 180_000,
        },
      },
    ],
  },
})
