import Wire

#if canImport(FoundationEssentials)
  public import FoundationEssentials
#else
  public import Foundation
#endif

/// What a hub shows a push service to prove who it is: a list of named texts
/// (spec `rest-api.md` 8.1, table of properties).
///
/// ```swift
/// HubCredential(["Token": p8, "KeyId": "…", "AppId": "…", "AppName": "com.example.app",
///   "Endpoint": "https://api.push.apple.com:443/3/device"])
/// ```
public struct HubCredential: Hashable, Sendable, ExpressibleByDictionaryLiteral,
  CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable
{
  /// By name, spelled as in the specification.
  public var properties: [String: String]
  /// Since when the push service refuses it; set by the hub.
  public var blockedOn: Date?

  public init(_ properties: [String: String], blockedOn: Date? = nil) {
    self.properties = properties
    self.blockedOn = blockedOn
  }

  public init(dictionaryLiteral elements: (String, String)...) {
    self.init(Dictionary(elements, uniquingKeysWith: { _, last in last }))
  }

  /// The property of that name, letter case aside.
  public subscript(name: String) -> String? {
    if let exact = properties[name] { return exact }
    let folded = name.lowercased()
    return properties.first { $0.key.lowercased() == folded }?.value
  }

  /// Without the values.
  public var description: String {
    "credential (\(properties.keys.sorted().joined(separator: ", ")))"
  }
  public var debugDescription: String { description }
  public var customMirror: Mirror { Mirror(self, children: []) }
}

extension HubCredential {
  /// The names of the properties, in the order in which they are written.
  package static func propertyNames(_ platform: PushPlatform) -> [String] {
    switch platform {
    case .apns:
      [
        "ApnsCertificate", "CertificateKey", "Endpoint", "Thumbprint", "Token", "KeyId", "AppName",
        "AppId", "OtherEndpoint", "BroadcastEndpoint",
      ]
    case .wns:
      [
        "PackageSid", "SecretKey", "WindowsLiveEndpoint", "WnsCertificate", "CertificateKey",
        "TenantId", "ClientId", "ClientSecret",
      ]
    case .gcm: ["GoogleApiKey", "GcmEndpoint"]
    case .fcmv1:
      ["PrivateKey", "ProjectId", "ClientEmail", "PrivateKeyId", "Endpoint", "TokenUri"]
    case .mpns: ["MpnsCertificate", "CertificateKey", "Thumbprint"]
    case .adm: ["ClientId", "ClientSecret", "AuthTokenUrl", "SendUrlTemplate"]
    case .baidu: ["BaiduApiKey", "BaiduSecretKey", "BaiduEndPoint"]
    case .browser: ["Subject", "VapidPublicKey", "VapidPrivateKey"]
    case .xiaomi: ["AppSecret", "Endpoint"]
    }
  }

  /// Those of ``propertyNames(_:)`` that the original does not have.
  private static func extensionNames(_ platform: PushPlatform) -> [String] {
    switch platform {
    case .apns: ["OtherEndpoint", "BroadcastEndpoint"]
    case .wns: ["TenantId", "ClientId", "ClientSecret"]
    case .fcmv1: ["PrivateKeyId", "Endpoint", "TokenUri"]
    case .gcm, .mpns, .adm, .baidu, .browser, .xiaomi: []
    }
  }

  /// What clients of the original are shown of it: some call a setter for each name that they find.
  /// - Returns: `nil` when they know none of it.
  func withoutExtensions(_ platform: PushPlatform) -> HubCredential? {
    guard platform != .xiaomi else { return nil }
    var known = self
    for name in Self.extensionNames(platform) {
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

  /// Names get the spelling of the specification. A value that is empty or, as the Java SDK writes it
  /// for what it does not have, the text `null` is none; only a certificate's password may be empty.
  init(_ node: XMLNode, _ platform: PushPlatform) throws(WireFormatError) {
    let names = Self.propertyNames(platform)
    var properties: [String: String] = [:]
    for property in node["Properties"]?.children ?? [] where property.name == "Property" {
      guard let name = property.word("Name") else { throw Registration.invalidDescription }
      let folded = name.lowercased()
      let known = names.first { $0.lowercased() == folded }
      guard let value = property.value("Value"), value.trimmingBlanks.lowercased() != "null",
        !value.trimmingBlanks.isEmpty || known == Self.password
      else { continue }
      properties[known ?? name] = value
    }
    self.init(properties, blockedOn: AtomReader.date(node.word("BlockedOn")))
  }
}
