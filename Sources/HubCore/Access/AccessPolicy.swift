package import Foundation
package import NotificationHubs
import Wire

/// The rights of a key (docs/protocol/sas.md, section 5).
package struct AccessRights: OptionSet, Hashable, Sendable {
  package let rawValue: UInt8
  package init(rawValue: UInt8) { self.rawValue = rawValue }
  /// Register devices.
  package static let listen = AccessRights(rawValue: 1)
  /// Send notifications and read their telemetry.
  package static let send = AccessRights(rawValue: 2)
  /// Everything; a policy with it has the other two as well.
  package static let manage = AccessRights(rawValue: 4)
  package static let all: AccessRights = [.listen, .send, .manage]

  /// The names for people: `Listen`, `Send`.
  package var words: [String] {
    [("Listen", AccessRights.listen), ("Manage", .manage), ("Send", .send)]
      .filter { contains($0.1) }.map(\.0)
  }
}

/// A named pair of keys with rights: an authorization rule of a hub or of the namespace.
package struct AccessPolicy: Hashable, Sendable, CustomStringConvertible {
  /// 1–256 URL-safe characters, unique in its hub.
  package let name: String
  package var rights: AccessRights
  /// Base64 of 32 random bytes, 44 characters; the *text* is the key (docs/protocol/sas.md,
  /// section 2.1).
  package var primaryKey: String
  package var secondaryKey: String
  package let createdAt: Date
  package var modifiedAt: Date

  package init(
    name: String, rights: AccessRights, primaryKey: String, secondaryKey: String,
    createdAt: Date, modifiedAt: Date
  ) {
    self.name = name
    self.rights = rights
    self.primaryKey = primaryKey
    self.secondaryKey = secondaryKey
    self.createdAt = createdAt
    self.modifiedAt = modifiedAt
  }

  /// A description without the keys.
  package var description: String { "access policy '\(name)'" }
}

extension AccessPolicy {
  /// The policies that a new hub gets (docs/protocol/rest.md, section 8.2).
  package static let defaultListenName = "DefaultListenSharedAccessSignature"
  package static let defaultFullName = "DefaultFullSharedAccessSignature"
  /// The policy that a new namespace gets; it applies to every hub.
  package static let rootName = "RootManageSharedAccessKey"
  /// Maximum number of policies of one hub, and of the namespace (docs/protocol/rest.md, section
  /// 9).
  package static let countLimit = 12
  /// Maximum length of a name, in characters.
  package static let nameLimit = 256

  /// Creates a policy; keys that are not given are random.
  /// - Throws: 400 when the name, the rights or a given key are not allowed (docs/protocol/rest.md,
  ///   section 8.1).
  package static func new(
    named name: String, rights: AccessRights, primaryKey: String? = nil,
    secondaryKey: String? = nil, at now: Date, random: HubRandom
  ) throws(HubFailure) -> AccessPolicy {
    let policy = AccessPolicy(
      name: name, rights: rights, primaryKey: primaryKey ?? randomKey(random),
      secondaryKey: secondaryKey ?? randomKey(random), createdAt: now, modifiedAt: now)
    if let fault = policy.fault { throw HubFailure(status: 400, message: fault) }
    return policy
  }

  /// Base64 of 32 random bytes.
  package static func randomKey(_ random: HubRandom) -> String {
    Data(random.bytes(32)).base64EncodedString()
  }

  private var fault: String? {
    let isURLSafe = name.utf8.allSatisfy {
      $0.isNameByte || $0 == UInt8(ascii: "-") || $0 == UInt8(ascii: ".") || $0 == UInt8(ascii: "~")
    }
    guard isURLSafe, (1...Self.nameLimit).contains(name.utf8.count) else {
      return "The name of an access policy must have 1 to \(Self.nameLimit) characters out of "
        + "letters, digits and -._~"
    }
    if rights.isEmpty { return "An access policy needs at least one right" }
    if rights.contains(.manage), rights != .all {
      return "An access policy with the right Manage must have Send and Listen as well"
    }
    for key in [primaryKey, secondaryKey]
    where key.utf8.count != 44 || Data(base64Encoded: key)?.count != 32 {
      return "The key of an access policy must be the base64 text of 32 bytes"
    }
    return nil
  }

  /// The connection string for clients of this policy, with its primary key.
  package func connectionString(endpoint: ServiceEndpoint) -> ConnectionString {
    ConnectionString(endpoint: endpoint, keyName: name, key: primaryKey)
  }
}
