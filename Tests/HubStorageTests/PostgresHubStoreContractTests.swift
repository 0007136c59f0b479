import HubCore
import HubTesting
import StoreContract
import Testing

@testable import HubStorage

@Suite(
  "PostgreSQL keeps the contract of a hub store",
  .enabled(if: PostgresStores.areInstalled, "PostgreSQL's server is not installed"))
struct PostgresHubStoreContractTests {
  @Test("it holds that", arguments: HubStoreContract.clauses)
  func keeps(_ clause: HubStoreContract.Clause) async throws {
    try await PostgresStores.withNodes(1) { nodes in
      try await clause.check(nodes[0])
      let strays: Int64?
      do {
        strays = try await nodes[0].read { session in
          try session.first(
            """
            SELECT COUNT(*) FROM registration_handle h FULL JOIN registration r
              ON r.hub = h.hub AND r.handle_hash = h.hash AND r.id = h.id
                AND (r.template IS NULL) = (h.is_native = 1)
            WHERE (h.id IS NULL OR r.id IS NULL)
              AND EXISTS (SELECT 1 FROM hub WHERE hub.id IN (h.hub, r.hub))
            """)
        }
      } catch StoreError.closed {
        return
      }
      #expect(strays == 0, "handles and registrations tell the same")
    }
  }
}

@Suite(
  "PostgreSQL behind PgBouncer in transaction mode keeps the contract of a hub store",
  .enabled(if: PgBouncer.isInstalled, Comment(rawValue: PgBouncer.absence)))
struct PgBouncerHubStoreContractTests {
  @Test("it holds that", arguments: HubStoreContract.clauses)
  func keeps(_ clause: HubStoreContract.Clause) async throws {
    try await PostgresStores.withNodes(1, through: try PgBouncer.shared()) {
      try await clause.check($0[0])
    }
  }
}
