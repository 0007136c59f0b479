import Wire

#if canImport(FoundationEssentials)
  public import FoundationEssentials
#else
  public import Foundation
#endif

/// An access policy: a named pair of keys with rights (docs/protocol/rest.md, section 8.1).
public struct AuthorizationRule: Hashable, Sendable, CustomStringConvertible,
  CustomDebugStringConvertible, CustomReflectable
{
  /// The operations that keys permit.
  public enum Right: String, CaseIterable, Hashable, Sendable {
    /// Registering devices.
    case listen = "Listen"
    /// Everything; requires the other two rights.
    case manage = "Manage"
    /// Sending notifications.
    case send = "Send"
  }

  /// The name, 1 to 256 URL-safe characters, unique in its hub.
  public var keyName: String
  /// The rights that both keys grant.
  public var rights: Set<Right>
  /// The primary key, 44 characters of base64 for 32 bytes; `nil` lets the hub generate one.
  public var primaryKey: String?
  /// The secondary key, in the same form; `nil` lets the hub generate one.
  public var secondaryKey: String?
  /// The time of creation; set by the hub.
  public var createdTime: Date?
  /// The time of the last change; set by the hub.
  public var modifiedTime: Date?

  /// Creates a rule.
  public init(
    keyName: String, rights: Set<Right>, primaryKey: String? = nil, secondaryKey: String? = nil,
    createdTime: Date? = nil, modifiedTime: Date? = nil
  ) {
    self.keyName = keyName
    self.rights = rights
    self.primaryKey = primaryKey
    self.secondaryKey = secondaryKey
    self.createdTime = createdTime
    self.modifiedTime = modifiedTime
  }

  /// The name and rights, without the keys.
  public var description: String {
    "authorization rule '\(keyName)' (\(rights.map(\.rawValue).sorted().joined(separator: ", ")))"
  }
  /// The same as ``description``, without the keys.
  public var debugDescription: String { description }
  /// A mirror without the keys.
  public var customMirror: Mirror { Mirror(self, children: ["keyName": keyName]) }
}

extension AuthorizationRule {
  /// The maximum number of rules of a hub (docs/protocol/rest.md, section 9).
  package static let maximumCount = 12

  /// A description of the fault in the rule; `nil` if the rule is valid.
  package var fault: String? {
    guard (1...256).contains(keyName.utf8.count), keyName.utf8.allSatisfy(Self.isURLSafe) else {
      return "'KeyName' must have 1 to 256 URL-safe characters."
    }
    guard !rights.isEmpty else { return "The rule '\(keyName)' has no rights." }
    guard !rights.contains(.manage) || rights.count == 3 else {
      return "The rule '\(keyName)' has the right Manage, which needs Send and Listen."
    }
    for key in [primaryKey, secondaryKey].compactMap({ $0 }) {
      guard key.utf8.count == 44, Data(base64Encoded: key)?.count == 32 else {
        return "A key of the rule '\(keyName)' is not the base64 form of 32 bytes."
      }
    }
    return nil
  }

  private static func isURLSafe(_ byte: UInt8) -> Bool {
    (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte | 0x20)
      || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) || "-_.~!*()".utf8.contains(byte)
  }

  /// The element, with members in their fixed order.
  var xml: String {
    var text = "<AuthorizationRule i:type=\"SharedAccessAuthorizationRule\">"
    text += "<ClaimType>SharedAccessKey</ClaimType><ClaimValue>None</ClaimValue><Rights>"
    for right in rights.map(\.rawValue).sorted() { text.appendElement("AccessRights", right) }
    text += "</Rights>"
    text.appendElement("CreatedTime", createdTime.map(WireDate.trimmed))
    text.appendElement("ModifiedTime", modifiedTime.map(WireDate.trimmed))
    text.appendElement("KeyName", keyName)
    text.appendElement("PrimaryKey", primaryKey)
    text.appendElement("SecondaryKey", secondaryKey)
    return text + "</AuthorizationRule>"
  }

  init(_ node: XMLNode) throws(WireFormatError) {
    guard let name = node.word("KeyName") else { throw Registration.invalidDescription }
    var rights: Set<Right> = []
    for word in (node["Rights"]?.children ?? []).map({ $0.text.trimmingBlanks }) {
      guard let right = Right(rawValue: word) else {
        throw WireFormatError("The rule '\(name)' has an unknown right.")
      }
      guard rights.insert(right).inserted else {
        throw WireFormatError("The rule '\(name)' has the right \(word) twice.")
      }
    }
    self.init(
      keyName: name, rights: rights, primaryKey: node.word("PrimaryKey"),
      secondaryKey: node.word("SecondaryKey"),
      createdTime: AtomReader.date(node.word("CreatedTime")),
      modifiedTime: AtomReader.date(node.word("ModifiedTime")))
  }
}
