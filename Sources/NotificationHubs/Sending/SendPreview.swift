import Wire

/// What a send would do, found out without sending: Belfry's answer to `POST /{hub}/messages?dry-run`.
public struct SendPreview: Hashable, Sendable {
  /// One platform's share of the audience.
  public struct Share: Hashable, Sendable {
    public var platform: PushPlatform
    /// Registrations that the send addresses.
    public var devices: Int
    /// Of these, how many another registration with the same handle stands in for.
    public var duplicates: Int

    public init(platform: PushPlatform, devices: Int, duplicates: Int) {
      self.platform = platform
      self.devices = devices
      self.duplicates = duplicates
    }
  }

  /// Why pushes of a template, or of the payload itself, would come to nothing or to little.
  public struct Problem: Hashable, Sendable {
    public var platform: PushPlatform
    /// `too-large`, `broken-template`, `missing-property`, `no-credential`; later versions may know
    /// others.
    public var code: String
    public var text: String
    public var devices: Int
    /// The first bytes of the template; `nil` for a native payload.
    public var template: String?
    /// Whether the push would not be sent at all.
    public var isFatal: Bool

    public init(
      platform: PushPlatform, code: String, text: String, devices: Int, template: String?,
      isFatal: Bool
    ) {
      self.platform = platform
      self.code = code
      self.text = text
      self.devices = devices
      self.template = template
      self.isFatal = isFatal
    }
  }

  /// What one of the devices would get.
  public struct Sample: Hashable, Sendable {
    public var platform: PushPlatform
    /// `nil` for a direct send.
    public var registrationID: String?
    public var rendering: NotificationExplanation.Rendering

    public init(
      platform: PushPlatform, registrationID: String?,
      rendering: NotificationExplanation.Rendering
    ) {
      self.platform = platform
      self.registrationID = registrationID
      self.rendering = rendering
    }
  }

  /// How many devices were looked at: all, unless they are very many.
  public var examined: Int
  /// The whole audience.
  public var devices: Int
  public var shares: [Share]
  public var problems: [Problem]
  public var samples: [Sample]
  /// How long the delivery would take at the rate of the last large send; `nil` when there was none
  /// since the server's start.
  public var estimatedSeconds: Double?
  /// That rate.
  public var devicesPerSecond: Double?

  public init(
    examined: Int, devices: Int, shares: [Share], problems: [Problem], samples: [Sample],
    estimatedSeconds: Double?, devicesPerSecond: Double?
  ) {
    self.examined = examined
    self.devices = devices
    self.shares = shares
    self.problems = problems
    self.samples = samples
    self.estimatedSeconds = estimatedSeconds
    self.devicesPerSecond = devicesPerSecond
  }
}

extension SendPreview {
  package var json: [UInt8] {
    var writer = JSONWriter(capacity: 1024)
    writer.beginObject()
    writer.member("devices", devices)
    writer.member("examined", examined)
    writer.array("audience", shares) { writer, share in
      writer.beginObject()
      writer.member("platform", share.platform.rawValue)
      writer.member("devices", share.devices)
      writer.member("duplicates", share.duplicates)
      writer.endObject()
    }
    writer.array("problems", problems) { writer, problem in
      writer.beginObject()
      writer.member("platform", problem.platform.rawValue)
      writer.member("code", problem.code)
      writer.member("text", problem.text)
      writer.member("devices", problem.devices)
      writer.member("template", problem.template)
      writer.member("fatal", problem.isFatal)
      writer.endObject()
    }
    writer.array("samples", samples) { writer, sample in
      writer.beginObject()
      writer.member("platform", sample.platform.rawValue)
      writer.member("registrationId", sample.registrationID)
      writer.name("rendering")
      sample.rendering.write(to: &writer)
      writer.endObject()
    }
    writer.member("estimatedSeconds", estimatedSeconds)
    writer.member("devicesPerSecond", devicesPerSecond)
    writer.endObject()
    return writer.bytes
  }

  /// Reads the reply; platforms newer than this build are left out.
  package init(json: some Collection<UInt8>) throws(WireFormatError) {
    let root = try JSONValue.parse(json)
    guard let devices = root["devices"]?.count, let examined = root["examined"]?.count else {
      throw WireFormatError("The reply is no preview of a send.")
    }
    func platform(_ value: JSONValue) -> PushPlatform? {
      value["platform"]?.scalarText.flatMap(PushPlatform.init(installationWord:))
    }
    self.init(
      examined: examined, devices: devices,
      shares: root.items("audience").compactMap { item in
        platform(item).map {
          Share(
            platform: $0, devices: item["devices"]?.count ?? 0,
            duplicates: item["duplicates"]?.count ?? 0)
        }
      },
      problems: root.items("problems").compactMap { item in
        platform(item).map {
          Problem(
            platform: $0, code: item["code"]?.scalarText ?? "",
            text: item["text"]?.scalarText ?? "", devices: item["devices"]?.count ?? 0,
            template: item["template"]?.scalarText, isFatal: item["fatal"]?.flag ?? false)
        }
      },
      samples: root.items("samples").compactMap { item in
        guard let platform = platform(item), let rendering = item["rendering"] else { return nil }
        return Sample(
          platform: platform, registrationID: item["registrationId"]?.scalarText,
          rendering: .init(rendering))
      },
      estimatedSeconds: root["estimatedSeconds"]?.scalarText.flatMap(Double.init),
      devicesPerSecond: root["devicesPerSecond"]?.scalarText.flatMap(Double.init))
  }
}

extension JSONWriter {
  /// With three digits behind the point; nothing for what JSON cannot say.
  package mutating func member(_ name: String, _ number: Double?) {
    guard let number, number.isFinite, abs(number) < 1e15 else { return }
    self.name(name)
    raw(String((number * 1000).rounded() / 1000))
  }
}
