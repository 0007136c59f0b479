import Wire

#if canImport(FoundationEssentials)
  public import FoundationEssentials
#else
  public import Foundation
#endif

/// The credential of a hub for a push service: a set of named texts (docs/protocol/rest.md, section
/// 8.1, table of properties).
///
/// ```swift
/// HubCredential(["Token": p8, "KeyId": "…", "AppId": "…", "AppName": "com.example.app",
///   "Endpoint": "https://api.push.apple.com:443/3/device"])
/// ```
public struct HubCredential: Hashable, Sendable, ExpressibleByDictionaryLiteral,
  CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable
{
  /// The properties by name, spelled as in docs/protocol/rest.md, section 8.1.
  public var properties: [String: String]
  /// The time since which the push service has refused the credential; set by the hub.
  public var blockedOn: Date?

  /// Creates a credential from its properties.
  public init(_ properties: [String: String], blockedOn: Date? = nil) {
    self.properties = properties
    self.blockedOn = blockedOn
  }

  /// Creates a credential from a literal; of properties with the same name the last one applies.
  public init(dictionaryLiteral elements: (String, String)...) {
    self.init(Dictionary(elements, uniquingKeysWith: { _, last in last }))
  }

  /// The value of the property with that name, in any letter case.
  public subscript(name: String) -> String? {
    if let exact = properties[name] { return exact }
    let folded = name.lowercased()
    return properties.first { $0.key.lowercased() == folded }?.value
  }

  /// The names of the properties, without their values.
  public var description: String {
    "credential (\(properties.keys.sorted().joined(separator: ", ")))"
  }
  /// The same as ``description``, without the values.
  public var debugDescription: String { description }
  /// A mirror without the properties.
  public var customMirror: Mirror { Mirror(self, children: []) }
}

extension HubCredential {
  /// The names of the properties, in the order in which they are written.
  package static func propertyNames(_ platform: PushPlatform) -> [String] {
    platform.traits.properties
  }

  /// The part of the credential for clients of the original, some of which call a setter for each
  /// name that they find.
  /// - Returns: `nil` if they know none of its properties.
  func withoutExtensions(_ platform: PushPlatform) -> HubCredential? {
    guard platform.traits.isOriginal else { return nil }
    var known = self
    for name in platform.traits.extensionProperties {
      let folded = name.lowercased()
      for key in properties.keys where key.lowercased() == folded { known.properties[key] = nil }
    }
    return known.properties.isEmpty && !properties.isEmpty ? nil : known
  }

  /// The element of a platform's credential in a hub description.
  static func element(_ platform: PushPlatform) -> String {
    "\(platform.telemetryPrefix)Credential"
  }

  func xml(_ platform: PushPlatform) -> String {
    let order = Self.propertyNames(platform)
    func rank(_ name: String) -> Int { order.firstIndex(of: name) ?? order.count }
    var list = ""
    for (name, value) in properties.sorted(by: {
      (rank($0.key), $0.key) < (rank($1.key), $1.key)
    }) {
      list += "<Property>"
      list.appendElement("Name", name)
      list.appendElement("Value", value)
      list += "</Property>"
    }
    let name = Self.element(platform)
    var text = "<\(name)>" + (list.isEmpty ? "<Properties/>" : "<Properties>\(list)</Properties>")
    text.appendElement("BlockedOn", blockedOn.map(WireDate.trimmed))
    return text + "</\(name)>"
  }

  /// Decodes a credential. Names are normalized to the spelling of docs/protocol/rest.md, section
  /// 8.1. A value that is empty or the text `null`, which the Java SDK writes for missing values,
  /// counts as absent; only a certificate's password may be empty.
  init(_ node: XMLNode, _ platform: PushPlatform) throws(WireFormatError) {
    let names = Self.propertyNames(platform)
    var properties: [String: String] = [:]
    for property in node["Properties"]?.children ?? [] where property.name == "Property" {
      guard let name = property.word("Name") else { throw Registration.invalidDescription }
      let folded = name.lowercased()
      let known = names.first { $0.lowercased() == folded }
      guard let value = property.value("Value"), value.trimmingBlanks.lowercased() != "null",
        !value.trimmingBlanks.isEmpty || known == PlatformTraits.certificatePassword
      else { continue }
      properties[known ?? name] = value
    }
    self.init(properties, blockedOn: AtomReader.date(node.word("BlockedOn")))
  }
}

extension HubCredential {
  /// A description of what the credential lacks for this platform; `nil` if it is complete
  /// (docs/protocol/rest.md, section 8.1, table of properties).
  ///
  /// Apple's is not checked here: the properties that it requires depend on their values, and the
  /// gateway checks them.
  func fault(_ platform: PushPlatform) -> String? {
    var families = platform.traits.requiredProperties
    // MPNS permits unauthenticated senders, so a credential without properties is valid.
    if platform == .mpns, properties.isEmpty { families = [] }
    guard let first = families.first, !families.contains(where: { lacking($0) == nil }) else {
      return nil
    }
    // Reports on the group of which a property is present, since it is the one intended.
    let meant = families.first { names in names.contains { self[$0] != nil } } ?? first
    return lacking(meant).map { "'\(Self.element(platform))' must have the property '\($0)'." }
  }

  /// The first of these properties that is absent.
  private func lacking(_ names: [String]) -> String? {
    names.first { name in
      guard let value = self[name] else { return true }
      // The password of a certificate may be empty.
      return name != PlatformTraits.certificatePassword && value.trimmingBlanks.isEmpty
    }
  }
}
