package import Authentication

/// The role of an operator in a hub; each role includes the ones before it.
package enum OperatorRole: String, Comparable, CaseIterable, Sendable {
  /// Reads everything that Send or Manage may read, except keys and secrets of credentials.
  case viewer
  /// Sends, schedules, aborts.
  case sender
  /// Everything in the hub.
  case manager

  package static func < (one: Self, other: Self) -> Bool { one.rank < other.rank }
  private var rank: Int { Self.allCases.firstIndex(of: self) ?? 0 }
}

/// The roles of an operator, in the format of the operator file: `*=viewer,shop=manager`. The
/// asterisk stands for every hub; an entry for a hub by name overrides it there.
package struct OperatorRoles: Hashable, Sendable, CustomStringConvertible {
  package private(set) var everywhere: OperatorRole?
  /// The roles by hub name in lower case.
  package private(set) var byHub: [String: OperatorRole] = [:]

  /// - Returns: `nil` for a text without a role, or with two roles for one hub.
  package init?(_ text: String) {
    for part in text.split(separator: ",", omittingEmptySubsequences: false) {
      let sides = part.split(separator: "=", omittingEmptySubsequences: false)
      guard sides.count == 2, let role = OperatorRole(rawValue: String(sides[1])) else {
        return nil
      }
      if sides[0] == "*" {
        guard everywhere == nil else { return nil }
        everywhere = role
      } else {
        let hub = sides[0].lowercased()
        guard !hub.isEmpty, !hub.contains(where: \.isWhitespace),
          byHub.updateValue(role, forKey: hub) == nil
        else { return nil }
      }
    }
  }

  package subscript(hub: String) -> OperatorRole? { byHub[hub.lowercased()] ?? everywhere }

  package var description: String {
    ((everywhere.map { ["*=\($0.rawValue)"] } ?? [])
      + byHub.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value.rawValue)" })
      .joined(separator: ",")
  }
}

extension UserFile.Form {
  /// Operators with their roles; a missing file counts as empty.
  package static let operators = UserFile.Form(
    command: "belfry operator add", mayBeMissing: true, honoursGoodLines: true,
    isRemark: { OperatorRoles($0) != nil })
}
