import Wire

#if canImport(FoundationEssentials)
  public import FoundationEssentials
#else
  public import Foundation
#endif

/// A named pair of keys with rights (docs/protocol/rest.md, section 8.1).
public struct AuthorizationRule: Hashable, Sendable, CustomStringConvertible,
  CustomDebugStringConvertible, CustomReflectable
{
  /// What the keys open.
  public enum Right: String, CaseIterable, Hashable, Sendable {
    /// Register devices.
    case listen = "Listen"
    /// Everything; needs the other two.
    case manage = "Manage"
    /// Send notifications.
    case send = "Send"
  }

  /// 1 to 256 URL-safe characters, unique in its hub.
  public var keyName: String
  public var rights: Set<Right>
  /// Base64 of 32 bytes, 44 characters; `nil` lets the hub make one.
  public var primaryKey: String?
  public var secondaryKey: String?
  /// Set by the hub.
  public var createdTime: Date?
  public var modifiedTime: Date?

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

  /// Without the keys.
  public var description: String {
    "authorization rule '\(keyName)' (\(rights.map(\.rawValue).sorted().joined(separator: ", ")))"
  }
  public var debugDescription: String { description }
  public var customMirror: Mirror { Mirror(self, children: ["keyName": keyName]) }
}

extension AuthorizationRule {
  /// The most rules of a hub (docs/protocol/rest.md, section 9).
  package static let maximumCount = 12

  /// What is wrong with the rule; `nil` when a hub takes it.
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

  /// The element, members in their order.
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
