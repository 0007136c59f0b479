/// The differences between platforms that clients, hub, command line, portal and gateways need:
/// names, limits, formats, headers, the credential, and the device. `PlatformSheet.swift` has the
/// row of each platform.
package struct PlatformTraits: Sendable {
  /// The format of a native payload.
  package enum Form: String, Sendable {
    /// An XML document, unless a header marks it as raw.
    case xml
    /// A JSON object.
    case object
    /// Any JSON value.
    case json
  }

  /// The name for people.
  package let name: String
  /// The name on the command line; `nil` for the platform's raw value.
  package var word: String?
  /// Further names that the command line accepts, besides the raw value and the send format.
  package var otherWords: Set<String> = []

  /// The value of `ServiceBusNotification-Format` for a native send; `nil` for the platform's raw
  /// value.
  package var sendFormat: String?
  /// The prefix of telemetry elements and, unless ``registrationPrefix`` overrides it, of
  /// registration elements.
  package let prefix: String
  package var registrationPrefix: String?
  /// The one to three registration elements that hold the handle; `nil` for the prefix followed by
  /// `RegistrationId`.
  package var handleElements: [String]?
  /// Whether a template registration has headers.
  package var hasTemplateHeaders = false
  /// Whether the original service supports the platform. Others are shown only to clients that ask
  /// for extensions.
  package var isOriginal = true
  /// The replacement to recommend to people; `nil` if the service is still running.
  package var successor: String?

  package var form = Form.object
  /// The maximum payload in bytes that the push service documents; gateways and the services
  /// themselves decide.
  package var payloadLimit: Int?
  /// The prefix of header names that are specific to this push service.
  package var headerPrefix: String?
  /// The names of further such headers.
  package var headers: Set<String> = []
  /// Payloads to start from.
  package var samples: [PayloadSample] = []

  package var credential: CredentialTraits
  /// The device for which the emulator stands in; `nil` for services that have ended.
  package var phone: PhoneTraits?
}

/// A payload to start from. `name` is a key of the portal's texts.
package struct PayloadSample: Sendable {
  package let name: String
  package let body: String
  package let headers: [String: String]

  init(_ name: String, _ body: String, headers: [String: String] = [:]) {
    (self.name, self.body, self.headers) = (name, body, headers)
  }
}

/// The properties of a platform's credential (docs/protocol/rest.md, section 8.1).
package struct CredentialTraits: Sendable {
  package struct Field: Sendable {
    package enum Kind: String, Sendable {
      case text, secret
      /// A secret of several lines.
      case lines
      /// The content of a file in base 64, which is secret.
      case file
      /// Apple's production, its sandbox, or a URL.
      case endpoint
    }

    package let property: String
    /// The key in a hub's section of a configuration.
    package let key: String
    /// The options of `belfry credential set`, the preferred one first.
    package let options: [String]
    package var kind = Kind.text
    /// Whether the original does not have the property, or one of its clients breaks on it.
    package var isExtension = false
    package var example: String?
    /// The help of an option that only credentials of names and secrets have.
    package var help = ""

    package var isSecret: Bool { [.secret, .lines, .file].contains(kind) }

    init(
      _ property: String, _ key: String, _ options: String..., kind: Kind = .text,
      isExtension: Bool = false, example: String? = nil, help: String = ""
    ) {
      (self.property, self.key, self.options, self.kind) = (property, key, options, kind)
      (self.isExtension, self.example, self.help) = (isExtension, example, help)
    }
  }

  /// One of the alternative ways to authenticate: properties that must be present together.
  package struct Way: Sendable {
    /// The end of its name among the portal's texts (`credentials.form.…`), needed if there are
    /// several; `nil` for a way that is only for clients of the API.
    package let name: String?
    package let required: [String]
    package var optional: [String] = []

    init(_ name: String?, _ required: String..., optional: [String] = []) {
      (self.name, self.required, self.optional) = (name, required, optional)
    }
  }

  /// The fields, in the order in which the properties are written.
  package let fields: [Field]
  package let ways: [Way]
  /// The way that the portal offers first.
  package var preferredWay = 0
  /// Whether the properties that are required depend on their values, so that only the gateway
  /// checks them.
  package var isCheckedByGateway = false
  /// The property that holds a certificate, whose password is in
  /// ``PlatformTraits/certificatePassword``.
  package var certificate: String?
  /// A word or two for a credential without a certificate, shown to people.
  package var secret = "secret"

  /// The fields of a way, and whether each may be left out.
  package func fields(of way: Way) -> [(field: Field, isOptional: Bool)] {
    let parts = way.required.map { ($0, false) } + way.optional.map { ($0, true) }
    return parts.compactMap { name, isOptional in
      fields.first { $0.property == name }.map { ($0, isOptional) }
    }
  }
}

/// A device of a platform, as the emulator, `belfry phone` and the portal have it.
package struct PhoneTraits: Sendable {
  /// The parts of a payload that the device shows.
  package enum Reading: Sendable {
    /// Apple's `aps`.
    case alert
    /// The texts of a Windows toast.
    case toast
    /// Title and body by the paths of the members in a JSON object, the first pair that is there.
    case members([(title: String, body: String)])
  }

  /// The name of the push service in the emulator.
  package let service: String
  /// The name of the device for people.
  package let name: String
  /// Its drawing in the portal: `ios`, `android`, `windows`, `browser` or `tablet`.
  package var look = "android"
  /// The payload in the help of `belfry send`.
  package let payload: String
  /// The vendor's term for a handle.
  package let handleName: String
  /// The members of a handle in the emulator.
  package let handle: [String]
  /// The tutorial's template, or its equivalent for this device.
  package let template: String
  package var templateHeaders: [String: String] = [:]
  package let reading: Reading
  /// Whether a payload without these parts is shown as text.
  package var showsText = false
  /// The push service's answer for a handle that is dead.
  package let dead: (status: Int, reason: String?)
  /// The way in which `credential probe` asks the push service.
  package let probe: Probe

  package enum Probe: Sendable {
    case push, validation, token, none
  }
}

extension PlatformTraits {
  /// The property with a certificate's password, which may be empty.
  package static let certificatePassword = "CertificateKey"

  /// The names of the credential's properties, in the order in which they are written.
  package var properties: [String] { credential.fields.map(\.property) }
  /// The properties that the original does not have, or that break one of its clients.
  package var extensionProperties: [String] {
    credential.fields.filter(\.isExtension).map(\.property)
  }
  /// Groups of properties that must be present together; one complete group is enough.
  package var requiredProperties: [[String]] {
    credential.isCheckedByGateway ? [] : credential.ways.map(\.required)
  }
  package var certificate: String? { credential.certificate }
  package var secret: String { credential.secret }
}

extension PushPlatform {
  /// The name on the command line.
  package var word: String { traits.word ?? rawValue }

  /// The platform with this name on the command line, in any letter case: its own, that of an
  /// installation, of a send or of the emulator, or another that people use.
  package init?(named text: String) {
    let text = text.lowercased()
    guard
      let found = Self.allCases.first(where: {
        [$0.word, $0.rawValue, $0.sendFormat, $0.traits.phone?.service].contains(text)
          || $0.traits.otherWords.contains(text)
      })
    else { return nil }
    self = found
  }

  /// The platforms whose push service is running, in the order for people.
  package static let running = sheetOrder.filter { $0.traits.successor == nil }
}
