/// The header fields of a send, looked up by lower-case name.
package struct SendHeaders: Sendable {
  /// The first value of each name; what HTTP lets come twice is of no use in a send.
  let fields: [String: String]
  /// Names that came more than once with different values: what the sender meant is not known.
  let contradictory: Set<String>

  /// - Parameter fields: As they came: names in any letter case.
  package init(_ fields: some Sequence<(name: String, value: String)>) {
    var kept: [String: String] = [:]
    var contradictory: Set<String> = []
    for (name, value) in fields {
      let name = name.lowercased()
      if let first = kept[name] {
        if first != value { contradictory.insert(name) }
      } else {
        kept[name] = value
      }
    }
    self.fields = kept
    self.contradictory = contradictory
  }

  private init(fields: [String: String], contradictory: Set<String>) {
    self.fields = fields
    self.contradictory = contradictory
  }

  /// The same fields with another content type: that of a part of the body.
  func with(contentType: String?) -> SendHeaders {
    var fields = fields
    fields[SendHeaderName.contentType] = contentType
    return SendHeaders(fields: fields, contradictory: contradictory)
  }

  /// - Parameter name: In lower case.
  subscript(name: String) -> String? { fields[name] }
}

/// The names of the headers that the hub reads, in lower case (spec `rest-api.md` 5.1).
enum SendHeaderName {
  /// What all headers that are for the hub itself begin with.
  static let hubPrefix = "servicebusnotification-"
  static let format = "servicebusnotification-format"
  static let tags = "servicebusnotification-tags"
  static let tagsAlias = "tags"
  static let apnsExpiryDate = "servicebusnotification-apns-expiry"
  static let apnsExpiration = "apns-expiration"
  static let apnsPriority = "apns-priority"
  /// Older spellings, each with the name that has taken its place.
  static let apnsAliases = [
    ("x-apns-priority", "apns-priority"), ("x-apns-expiration", "apns-expiration"),
    ("x-apns-push-type", "apns-push-type"),
  ]
  static let wnsType = "x-wns-type"
  static let mpnsTarget = "x-windowsphone-target"
  static let mpnsClass = "x-notificationclass"
  static let contentType = "content-type"
  static let deviceHandle = "servicebusnotification-devicehandle"
  static let scheduleTime = "servicebusnotification-scheduletime"
  static let p256dh = "p256dh"
  static let auth = "auth"
  /// Beyond the original: see `docs/extensions.md`.
  static let idempotencyKey = "idempotency-key"
}
