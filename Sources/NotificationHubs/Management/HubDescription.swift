import Wire

#if canImport(FoundationEssentials)
  public import FoundationEssentials
#else
  public import Foundation
#endif

/// The settings of a hub (docs/protocol/rest.md, section 8).
public struct HubDescription: Hashable, Sendable {
  /// The recent usage of a hub, counted by the hub.
  public struct Usage: Hashable, Sendable {
    /// The number of operations per day.
    public var dailyOperations: Int64
    /// The maximum number of active devices per day.
    public var dailyMaxActiveDevices: Int64
    /// The maximum number of active registrations per day.
    public var dailyMaxActiveRegistrations: Int64
    /// The number of API calls per day.
    public var dailyAPICalls: Int64

    /// Creates usage counters.
    public init(
      dailyOperations: Int64 = 0, dailyMaxActiveDevices: Int64 = 0,
      dailyMaxActiveRegistrations: Int64 = 0, dailyAPICalls: Int64 = 0
    ) {
      self.dailyOperations = dailyOperations
      self.dailyMaxActiveDevices = dailyMaxActiveDevices
      self.dailyMaxActiveRegistrations = dailyMaxActiveRegistrations
      self.dailyAPICalls = dailyAPICalls
    }
  }

  /// The name: a letter, followed by letters, digits and `-._`, at most 260 characters.
  public var name: String
  /// The lifetime of a registration after its last write, in seconds, at least one day; `nil` for
  /// unlimited.
  public var registrationTTL: TimeInterval?
  /// The access policies, at most 12. `nil` lets the hub generate two on creation, and keeps the
  /// present ones on update.
  public var authorizationRules: [AuthorizationRule]?
  /// The credentials by platform.
  public var credentials: [PushPlatform: HubCredential]
  /// Whether the hub is disabled: it then rejects device calls and sends.
  public var isDisabled: Bool
  /// Text of your own, at most 1024 characters.
  public var userMetadata: String?
  /// The usage; `nil` if the hub does not report it.
  public var usage: Usage?
  /// The time of creation; set by the hub, except in its reply to an update.
  public var createdTime: Date?
  /// The time of the last change; set by the hub.
  public var updatedTime: Date?

  /// Creates a description.
  public init(
    name: String, registrationTTL: TimeInterval? = nil,
    authorizationRules: [AuthorizationRule]? = nil,
    credentials: [PushPlatform: HubCredential] = [:], isDisabled: Bool = false,
    userMetadata: String? = nil, usage: Usage? = nil
  ) {
    self.name = name
    self.registrationTTL = registrationTTL
    self.authorizationRules = authorizationRules
    self.credentials = credentials
    self.isDisabled = isDisabled
    self.userMetadata = userMetadata
    self.usage = usage
  }

  /// Returns the description if a hub accepts it (docs/protocol/rest.md, section 8.1).
  ///
  /// A credential must have the properties of its platform (those of `apns` are left to the hub);
  /// acceptance by the push service is not checked here.
  /// - Throws: ``WireFormatError`` that names the fault.
  public func validated() throws(WireFormatError) -> HubDescription {
    guard Self.isName(name) else {
      throw WireFormatError(
        "The name of a hub must start with a letter, then have letters, digits and -._, and at "
          + "most 260 characters.")
    }
    if let registrationTTL, registrationTTL < 86_400 {
      throw WireFormatError("'RegistrationTtl' must be at least one day.")
    }
    if let userMetadata, userMetadata.utf16.count > 1024 {
      throw WireFormatError("'UserMetadata' must have at most 1024 characters.")
    }
    let rules = authorizationRules ?? []
    guard rules.count <= AuthorizationRule.maximumCount else {
      throw WireFormatError(
        "A hub can have at most \(AuthorizationRule.maximumCount) authorization rules.")
    }
    for rule in rules {
      if let fault = rule.fault { throw WireFormatError(fault) }
    }
    guard Set(rules.map { $0.keyName.lowercased() }).count == rules.count else {
      throw WireFormatError("Two authorization rules have the same 'KeyName'.")
    }
    for platform in PushPlatform.allCases {
      if let fault = credentials[platform]?.fault(platform) { throw WireFormatError(fault) }
    }
    return self
  }

  /// Whether the text is a valid hub name: one path segment (docs/protocol/rest.md, section 1.1,
  /// without names of several segments).
  package static func isName(_ name: String) -> Bool {
    guard (1...260).contains(name.utf8.count), let first = name.utf8.first, isLetter(first) else {
      return false
    }
    return name.utf8.allSatisfy {
      isLetter($0) || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0)
        || "-._".utf8.contains($0)
    }
  }

  private static func isLetter(_ byte: UInt8) -> Bool {
    (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte | 0x20)
  }
}

extension HubDescription {
  private static let root = "NotificationHubDescription"

  /// The part of the description for clients of the original.
  package var withoutExtensions: HubDescription {
    var known = self
    for (platform, credential) in credentials {
      known.credentials[platform] = credential.withoutExtensions(platform)
    }
    return known
  }

  /// Restores the credentials that a client of the original could not have meant to change when it
  /// reads a hub, changes something and writes it back: those that it was not shown at all, and
  /// those whose visible part it left unchanged.
  package func keepingExtensions(of present: HubDescription) -> HubDescription {
    var result = self
    for (platform, credential) in present.credentials {
      let shown = credential.withoutExtensions(platform)?.properties
      if credentials[platform]?.properties == shown { result.credentials[platform] = credential }
    }
    return result
  }

  /// The entry in a hub's reply (docs/protocol/rest.md, section 8.1).
  ///
  /// - Parameters:
  ///   - address: The URL of the hub, with the request's query.
  ///   - namespace: The name of the namespace.
  ///   - published: The time when the hub was created; `nil` in the reply to an update, as
  ///     recorded.
  package func entryXML(
    address: AtomAddress, namespace: String, published: Date?, updated: Date
  ) -> String {
    AtomWriter.entry(
      AtomWriter.Entry(
        address: address.text, title: name, published: published, updated: updated,
        author: namespace, payload: payload))
  }

  /// The entry in a client's request.
  package var requestXML: String {
    var request = self
    request.usage = nil
    return AtomWriter.request(request.payload)
  }

  /// The description alone, with members in the order of the service.
  fileprivate var payload: String {
    var text = AtomWriter.open(Self.root)
    func proofs(_ platforms: [PushPlatform]) -> String {
      platforms.compactMap { platform in credentials[platform].map { $0.xml(platform) } }.joined()
    }
    text += proofs([.apns])
    text.appendElement("RegistrationTtl", WireDuration.text(registrationTTL))
    text += proofs([.wns])
    if let authorizationRules {
      text += "<AuthorizationRules>"
      text += authorizationRules.map(\.xml).joined() + "</AuthorizationRules>"
    }
    text += proofs([.gcm, .mpns])
    for (name, count) in usage?.counters ?? [] where count != 0 {
      text.appendElement(name, String(count))
    }
    text.appendElement("UserMetadata", userMetadata)
    text += proofs([.adm, .baidu])
    if isDisabled { text.appendElement("Status", "true") }
    text += proofs([.fcmv1, .browser])
    text += proofs(PushPlatform.allCases.filter { !$0.traits.isOriginal })
    return text + "</\(Self.root)>"
  }

  /// Decodes and validates the body of a PUT; members that only the hub sets are absent.
  /// - Parameter name: The hub's name, from the path.
  package static func decodeRequest(
    _ body: some Collection<UInt8>, name: String
  ) throws(WireFormatError) -> HubDescription {
    guard let payload = AtomReader.payload(body) else { throw Registration.invalidDescription }
    var hub = try HubDescription(payload, name: name)
    hub.usage = nil
    return try hub.validated()
  }

  /// Decodes the reply of a hub; `nil` for a feed, which the service returns if there is no such
  /// hub (docs/protocol/rest.md, section 8.4).
  package static func decode(
    _ document: some Collection<UInt8>, name: String
  ) throws(WireFormatError) -> HubDescription? {
    guard let root = XMLNode.parse(document) else { throw Registration.invalidDescription }
    if root.name == "feed" { return nil }
    guard let payload = AtomReader.payload(root) else { throw Registration.invalidDescription }
    return try HubDescription(payload, of: root, name: name)
  }

  /// The description in an entry of a reply.
  fileprivate init(
    _ payload: XMLNode, of entry: XMLNode, name: String
  ) throws(WireFormatError) {
    try self.init(payload, name: entry.word("title") ?? name)
    createdTime = AtomReader.date(entry.word("published"))
    updatedTime = AtomReader.date(entry.word("updated"))
  }

  fileprivate init(_ node: XMLNode, name: String) throws(WireFormatError) {
    guard node.name == Self.root else { throw Registration.invalidDescription }
    self.init(name: name)
    if let text = node.word("RegistrationTtl") {
      switch WireDuration.parse(text) {
      case .forever: registrationTTL = nil
      case .seconds(let seconds): registrationTTL = seconds
      case nil: throw WireFormatError("'RegistrationTtl' must be a duration such as P90D.")
      }
    }
    if let list = node["AuthorizationRules"], !list.isNil {
      var rules: [AuthorizationRule] = []
      for rule in list.children { rules.append(try AuthorizationRule(rule)) }
      authorizationRules = rules
    }
    for platform in PushPlatform.allCases {
      if let child = node[HubCredential.element(platform)], !child.isNil {
        credentials[platform] = try HubCredential(child, platform)
      }
    }
    if let text = node.value("Status") {
      switch text.trimmingBlanks.lowercased() {
      case "true", "1": isDisabled = true
      case "false", "0": isDisabled = false
      default: throw Registration.invalidDescription
      }
    }
    userMetadata = node.value("UserMetadata")
    let counts = Usage.names.map { Int64(node.word($0) ?? "") ?? 0 }
    usage = Usage(
      dailyOperations: counts[0], dailyMaxActiveDevices: counts[1],
      dailyMaxActiveRegistrations: counts[2], dailyAPICalls: counts[3])
  }
}

extension HubDescription.Usage {
  fileprivate static let names = [
    "DailyOperations", "DailyMaxActiveDevices", "DailyMaxActiveRegistrations", "DailyApiCalls",
  ]

  fileprivate var counters: [(String, Int64)] {
    Array(
      zip(
        Self.names,
        [dailyOperations, dailyMaxActiveDevices, dailyMaxActiveRegistrations, dailyAPICalls]))
  }
}

/// The two lists of a namespace's hubs (docs/protocol/rest.md, section 8.5).
package enum HubListing {
  /// A hub with its times.
  package typealias Item = (hub: HubDescription, published: Date, updated: Date)

  /// The reply to `GET /`: names only. It is also the reply to a request for a hub that does not
  /// exist.
  ///
  /// - Parameters:
  ///   - endpoint: The host, with the port if it is not the default.
  ///   - service: The start of the ids: a UUID of the server.
  ///   - number: The number of the first id; it increases by one with each entry.
  package static func services(
    hubs: [String], endpoint: String, service: String, number: Int, now: Date
  ) -> String {
    let updated = "<updated>\(WireDate.seconds(now))</updated>"
    func id(_ offset: Int) -> String { "<id>uuid:\(service);id=\(number &+ offset)</id>" }
    var text = "<feed xmlns=\"\(WireName.atomNamespace)\">"
    text += "<title type=\"text\">Publicly Listed Services</title><subtitle type=\"text\">"
    text += "This is the list of publicly-listed services currently available.</subtitle>"
    text += id(0) + updated + "<generator>Service Bus 1.1</generator>"
    for (index, hub) in hubs.enumerated() {
      text += "<entry>\(id(index + 1))<title type=\"text\">\(hub.xmlEscaped)</title>\(updated)"
      text += "<link rel=\"alternate\" href=\""
      text += "http://\(endpoint)/\(hub)".xmlAttributeEscaped + "\"/></entry>"
    }
    return text + "</feed>"
  }

  /// The reply to `GET /$Resources/NotificationHubs`: full descriptions.
  /// - Parameter address: The URL of the list as requested.
  package static func descriptions(
    _ items: [Item], address: AtomAddress, namespace: String, now: Date
  ) -> String {
    AtomWriter.feed(
      title: "NotificationHubs", address: address, updated: now,
      entries: items.map { item in
        AtomWriter.Entry(
          address: address.root(item.hub.name).text, title: item.hub.name,
          published: item.published, updated: item.updated, author: namespace,
          payload: item.hub.payload)
      })
  }

  /// Decodes the list of full descriptions.
  package static func decode(
    _ document: some Collection<UInt8>
  ) throws(WireFormatError) -> [HubDescription] {
    guard let entries = AtomReader.entries(document) else {
      throw WireFormatError("The reply is no feed of hubs.")
    }
    var hubs: [HubDescription] = []
    for entry in entries {
      guard let payload = AtomReader.payload(entry) else { throw Registration.invalidDescription }
      hubs.append(try HubDescription(payload, of: entry, name: ""))
    }
    return hubs
  }
}
