package import Foundation

/// What a key may do (docs/protocol/sas.md, section 5).
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

  /// Without the keys.
  package var description: String { "access policy '\(name)'" }
}
