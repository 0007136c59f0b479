package import Foundation

extension HubService {
  /// The longest hub name, in characters (spec `rest-api.md` 1.1).
  package static let hubNameLimit = 260
  /// The shortest life of a registration, in seconds: one day (spec `rest-api.md` section 9).
  package static let minimumRegistrationTTL: TimeInterval = 86_400

  /// All hubs in the order of their creation.
  package func hubs() async throws(HubFailure) -> [Hub] {
    try await answering { try await store.hubs() }
  }

  /// - Throws: 404.
  package func hub(named name: String) async throws(HubFailure) -> Hub {
    guard let hub = try await answering({ try await store.hub(named: name) }) else { throw .noHub }
    return hub
  }

  /// Creates a hub with `DefaultListenSharedAccessSignature`, `DefaultFullSharedAccessSignature`
  /// and the given policies, which may also stand in for those two.
  ///
  /// - Parameter registrationTTL: In seconds, at least a day; `nil` is forever.
  /// - Throws: 400 for a name or time that is not allowed, 409 when there is such a hub.
  package func createHub(
    named name: String, registrationTTL: TimeInterval? = nil, policies: [AccessPolicy] = []
  ) async throws(HubFailure) -> Hub {
    let first = name.utf8.first
    guard name.utf8.count <= Self.hubNameLimit, first?.isLetter == true,
      name.utf8.allSatisfy({ $0.isNameByte || $0 == UInt8(ascii: "-") || $0 == UInt8(ascii: ".") })
    else {
      throw HubFailure(
        status: 400,
        message: "The name of a hub must begin with a letter, hold only letters, digits and -._, "
          + "and have at most \(Self.hubNameLimit) characters")
    }
    if let registrationTTL, !(registrationTTL >= Self.minimumRegistrationTTL) {
      throw HubFailure(status: 400, message: "The registration TTL must be at least one day")
    }
    let now = clock.now()
    var all: [AccessPolicy] = []
    for (name, rights) in [
      (AccessPolicy.defaultListenName, AccessRights.listen), (AccessPolicy.defaultFullName, .all),
    ] where !policies.contains(where: { $0.name == name }) {
      all.append(try .new(named: name, rights: rights, at: now))
    }
    all += policies
    guard all.count <= AccessPolicy.countLimit, Set(all.map(\.name)).count == all.count else {
      throw HubFailure(
        status: 400,
        message: "A hub has at most \(AccessPolicy.countLimit) access policies, each with its own "
          + "name")
    }
    return try await changing {
      try await store.createHub(
        named: name, registrationTTL: registrationTTL, policies: all, at: now)
    }
  }

  /// Deletes a hub with all its data.
  /// - Throws: 404.
  package func deleteHub(named name: String) async throws(HubFailure) {
    let wasThere = try await changing { try await store.deleteHub(named: name) }
    guard wasThere else { throw .noHub }
  }

  /// Runs a change of hubs, policies or credentials and makes it known to this process at once.
  func changing<Value>(_ work: () async throws -> Value) async throws(HubFailure) -> Value {
    try await answering {
      let value = try await work()
      try await directory.reload()
      return value
    }
  }
}
