package import HubCore
package import SQLDatabase

/// The requirements of subjects that both engines store in the same way on a reading session.
package protocol SubjectReading: AnyObject {
  var sql: any SQLConnection { get }
  var sealing: any SecretSealing { get }
  /// A hub that is being deleted does not exist, whatever rows it still has.
  func hasHub(_ hub: Hub.ID) throws -> Bool
}

extension SubjectReading {
  /// - Throws: ``StoreError/noHub`` when there is no such hub.
  func requireHub(_ hub: Hub.ID) throws {
    guard try hasHub(hub) else { throw StoreError.noHub }
  }
}

/// As ``SubjectReading``, for a session that finds the devices of numbers, too.
package protocol TargetReading: SubjectReading {
  /// The registrations with these numbers, as far as they exist.
  /// - Parameter numbers: In rising order.
  func targets(_ numbers: [RegistrationID], hub: Hub.ID) throws -> TargetPage
}

/// As ``SubjectReading``, for a writing session.
package protocol SubjectWriting: SubjectReading {
  /// Announces that hubs, policies or credentials change with this transaction.
  func changeDirectory() throws
  /// Allocates a number that no hub has had.
  func nextHub() throws -> Hub.ID
  /// Makes sure that pending rows of the transaction are not added to a hub that is being deleted.
  func willDelete(_ hub: Hub.ID) throws
  /// The processes that use the database and do not have a master key.
  func nodes(lacking key: String) throws -> [String]
}

/// An engine as its subjects see it. Subjects whose SQL is the same on both engines are extensions
/// of this protocol; the others are extensions of one store each.
package protocol SubjectStore: Sendable {
  /// Makes and reads the ids of registrations.
  var coding: RegistrationIDCoding { get }
  /// Runs `body` in a transaction, so that it sees one state of the database throughout.
  /// - Parameter call: The store's call with its labels, as ``StoreInterceptor`` receives it.
  func reading<Value: Sendable>(
    _ call: String, _ body: @escaping @Sendable (any SubjectReading) throws -> Value
  ) async throws -> Value
  /// Runs `body` for the dispatcher, which polls. Statements may see different states.
  func polling<Value: Sendable>(
    _ call: String, _ body: @escaping @Sendable (any TargetReading) throws -> Value
  ) async throws -> Value
  /// SQL for the retries of unfinished work that this process owns, as `r`, with their
  /// notifications, as `n`; a condition may follow.
  var ownRetries: String { get }
  /// Runs `body` in a transaction; returns once it is durable.
  func writing<Value: Sendable>(
    _ call: String, _ body: @escaping @Sendable (any SubjectWriting) throws -> Value
  ) async throws -> Value
}
