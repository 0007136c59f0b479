import Wire

/// What a send would do, found out without sending: Belfry's answer to `POST
/// /{hub}/messages?dry-run`.
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

  /// How many devices were examined: all, unless they are very many.
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
    JSONWriter.object(capacity: 1024) { writer in
      writer.member("devices", devices)
      writer.member("examined", examined)
      writer.objects("audience", shares) { writer, share in
        writer.member("platform", share.platform.rawValue)
        writer.member("devices", share.devices)
        writer.member("duplicates", share.duplicates)
      }
      writer.objects("problems", problems) { writer, problem in
        writer.member("platform", problem.platform.rawValue)
        writer.member("code", problem.code)
        writer.member("text", problem.text)
        writer.member("devices", problem.devices)
        writer.member("template", problem.template)
        writer.member("fatal", problem.isFatal)
      }
      writer.objects("samples", samples) { writer, sample in
        writer.member("platform", sample.platform.rawValue)
        writer.member("registrationId", sample.registrationID)
        writer.object("rendering") { sample.rendering.write(to: &$0) }
      }
      writer.member("estimatedSeconds", estimatedSeconds)
      writer.member("devicesPerSecond", devicesPerSecond)
    }
  }

  /// Reads the reply; platforms newer than this build are left out.
  package init(json: some Collection<UInt8>) throws(WireFormatError) {
    let root = try JSONValue.parse(json)
    guard let devices = root.count("devices"), let examined = root.count("examined") else {
      throw WireFormatError("The reply is no preview of a send.")
    }
    self.init(
      examined: examined, devices: devices,
      shares: root.items("audience").compactMap { item in
        item.platform.map {
          Share(
            platform: $0, devices: item.count("devices") ?? 0,
            duplicates: item.count("duplicates") ?? 0)
        }
      },
      problems: root.items("problems").compactMap { item in
        item.platform.map {
          Problem(
            platform: $0, code: item.text("code") ?? "", text: item.text("text") ?? "",
            devices: item.count("devices") ?? 0, template: item.text("template"),
            isFatal: item.flag("fatal") ?? false)
        }
      },
      samples: root.items("samples").compactMap { item in
        guard let platform = item.platform, let rendering = item["rendering"] else { return nil }
        return Sample(
          platform: platform, registrationID: item.text("registrationId"),
          rendering: .init(rendering))
      },
      estimatedSeconds: root.text("estimatedSeconds").flatMap(Double.init),
      devicesPerSecond: root.text("devicesPerSecond").flatMap(Double.init))
  }
}
