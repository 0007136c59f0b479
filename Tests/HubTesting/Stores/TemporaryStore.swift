package import HubStorage

/// Seals for tests: the context and a key in front, every bit turned over. Opens only under the
/// same key and context, and hides the text from anyone who looks into the file.
package struct TestSealing: SecretSealing {
  private struct DoesNotOpen: Error {}
  private let key: String

  package init(key: String = "test key") { self.key = key }

  package func seal(_ plaintext: [UInt8], context: String) -> [UInt8] {
    (prefix(context) + plaintext).map { ~$0 }
  }

  package func open(_ sealed: [UInt8], context: String) throws -> [UInt8] {
    let text = sealed.map { ~$0 }
    let prefix = prefix(context)
    guard text.starts(with: prefix) else { throw DoesNotOpen() }
    return Array(text.dropFirst(prefix.count))
  }

  private func prefix(_ context: String) -> [UInt8] { Array("\(key)|\(context)|".utf8) }
}

/// Runs `body` on a new SQLite store in a directory of its own, and removes both.
package func withTemporaryStore(
  options: SQLiteHubStore.Options = .init(),
  _ body: (SQLiteHubStore) async throws -> Void
) async throws {
  let directory = try TemporaryDirectory()
  defer { directory.remove() }
  let store = try await SQLiteHubStore.open(
    at: directory.path("hub.sqlite"), sealing: TestSealing(), options: options)
  do {
    try await body(store)
  } catch {
    try await store.close()
    throw error
  }
  try await store.close()
}
