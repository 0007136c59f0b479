import Wire

#if canImport(FoundationEssentials)
  public import FoundationEssentials
#else
  public import Foundation
#endif

/// A bulk operation on the registrations of a hub (docs/protocol/rest.md, section 7).
public struct NotificationHubJob: Hashable, Sendable {
  /// The operation of a job; values newer than this build are preserved.
  public struct Kind: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
    /// The value on the wire.
    public let rawValue: String
    /// Creates a kind from its wire value.
    public init(rawValue: String) { self.rawValue = rawValue }
    /// The value on the wire.
    public var description: String { rawValue }
    /// Writes every registration to a file, one description per line.
    public static let exportRegistrations = Kind(rawValue: "ExportRegistrations")
    /// Creates registrations from a file.
    public static let importCreateRegistrations = Kind(rawValue: "ImportCreateRegistrations")
    /// Updates existing registrations from a file.
    public static let importUpdateRegistrations = Kind(rawValue: "ImportUpdateRegistrations")
    /// Creates or replaces registrations from a file.
    public static let importUpsertRegistrations = Kind(rawValue: "ImportUpsertRegistrations")
    /// Deletes the registrations that a file lists.
    public static let importDeleteRegistrations = Kind(rawValue: "ImportDeleteRegistrations")

    /// Whether the job reads a file; `nil` for an unknown kind.
    package var isImport: Bool? {
      switch self {
      case .exportRegistrations: false
      case .importCreateRegistrations, .importUpdateRegistrations, .importUpsertRegistrations,
        .importDeleteRegistrations:
        true
      default: nil
      }
    }
  }

  /// The state of a job; values newer than this build are preserved.
  public struct Status: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
    /// The value on the wire.
    public let rawValue: String
    /// Creates a status from its wire value.
    public init(rawValue: String) { self.rawValue = rawValue }
    /// The value on the wire.
    public var description: String { rawValue }
    /// The job is accepted.
    public static let started = Status(rawValue: "Started")
    /// The job is running.
    public static let running = Status(rawValue: "Running")
    /// The job has completed; some lines of an import may have failed.
    public static let completed = Status(rawValue: "Completed")
    /// The job has failed; ``NotificationHubJob/failure`` has the reason.
    public static let failed = Status(rawValue: "Failed")

    /// Whether the job has ended.
    public var isFinal: Bool { self == .completed || self == .failed }
  }

  /// The id, assigned by the hub; `nil` for a job to submit.
  public var jobID: String?
  /// The operation.
  public var kind: Kind
  /// The state; set by the hub.
  public var status: Status
  /// The progress in percent, 0 to 100.
  public var progress: Double
  /// The URL of a container that the hub may write to, access token included.
  public var outputContainerURI: String
  /// The URL of the file to import, access token included; `nil` for an export.
  public var importFileURI: String?
  /// Further input by name.
  public var inputProperties: [String: String]
  /// The reason why the job failed.
  public var failure: String?
  /// The results by name, such as ``outputFilePath``; set by the hub.
  public var outputProperties: [String: String]
  /// The time at which the hub accepted the job.
  public var createdAt: Date?
  /// The time of the last update.
  public var updatedAt: Date?

  /// Creates a job; only the kind and the URLs are needed to submit one.
  public init(
    kind: Kind, outputContainerURI: String, importFileURI: String? = nil, jobID: String? = nil,
    status: Status = .started, progress: Double = 0, inputProperties: [String: String] = [:],
    failure: String? = nil, outputProperties: [String: String] = [:], createdAt: Date? = nil,
    updatedAt: Date? = nil
  ) {
    self.jobID = jobID
    self.kind = kind
    self.status = status
    self.progress = progress
    self.outputContainerURI = outputContainerURI
    self.importFileURI = importFileURI
    self.inputProperties = inputProperties
    self.failure = failure
    self.outputProperties = outputProperties
    self.createdAt = createdAt
    self.updatedAt = updatedAt
  }

  /// The name of the output property with the path of the results in the container.
  public static let outputFilePath = "OutputFilePath"
  /// The name of the output property with the path of the failed lines in the container.
  public static let failedFilePath = "FailedFilePath"
}

extension NotificationHubJob {
  /// The service's error for an invalid job.
  package static let invalidPayload = WireFormatError(
    "The supplied notificationhub job payload is invalid")

  private static let root = "NotificationHubJob"

  /// The entry in a hub's reply.
  ///
  /// The id is always appended to the requested address, so the reply to a GET of one job contains
  /// the id twice, as with the service; `Content-Location` is the same address.
  /// - Parameter address: The URL of the list or the job as requested.
  package func entryXML(address: AtomAddress, now: Date) -> String {
    AtomWriter.entry(entry(address: address, now: now))
  }

  /// The list of a hub's jobs.
  package static func feedXML(
    _ jobs: [NotificationHubJob], address: AtomAddress, now: Date
  ) -> String {
    AtomWriter.feed(
      title: "jobs", address: address, updated: now,
      entries: jobs.map { $0.entry(address: address, now: now) })
  }

  private func entry(address: AtomAddress, now: Date) -> AtomWriter.Entry {
    AtomWriter.Entry(
      address: address.appending(jobID ?? "").text, title: jobID ?? "",
      published: createdAt ?? now, updated: updatedAt ?? now, payload: payload)
  }

  /// The entry in a client's request.
  package var requestXML: String {
    AtomWriter.request(
      NotificationHubJob(
        kind: kind, outputContainerURI: outputContainerURI, importFileURI: importFileURI,
        inputProperties: inputProperties
      ).payload)
  }

  private var payload: String {
    var text = AtomWriter.open(Self.root)
    text.appendElement("JobId", jobID)
    if progress > 0 { text.appendElement("Progress", Self.decimal(progress)) }
    text.appendElement("Type", kind.rawValue)
    if status != .started { text.appendElement("Status", status.rawValue) }
    text.appendElement("OutputContainerUri", outputContainerURI)
    text.appendElement("ImportFileUri", importFileURI)
    text += Self.map("InputProperties", inputProperties)
    text.appendElement("Failure", failure)
    text += Self.map("OutputProperties", outputProperties)
    text.appendElement("CreatedAt", createdAt.map(WireDate.precise))
    text.appendElement("UpdatedAt", updatedAt.map(WireDate.precise))
    return text + "</\(Self.root)>"
  }

  /// The number with at most two decimals.
  private static func decimal(_ number: Double) -> String {
    let hundredths = Int((min(max(number, 0), 100) * 100).rounded())
    let (whole, rest) = hundredths.quotientAndRemainder(dividingBy: 100)
    if rest == 0 { return "\(whole)" }
    return rest % 10 == 0 ? "\(whole).\(rest / 10)" : "\(whole).\(rest < 10 ? "0" : "")\(rest)"
  }

  private static func map(_ name: String, _ map: [String: String]) -> String {
    guard !map.isEmpty else { return "" }
    let order = [outputFilePath, failedFilePath]
    func rank(_ key: String) -> Int { order.firstIndex(of: key) ?? order.count }
    var text = "<\(name) xmlns:d3p1=\"\(WireName.arraysNamespace)\">"
    for (key, value) in map.sorted(by: { (rank($0.key), $0.key) < (rank($1.key), $1.key) }) {
      text += "<d3p1:KeyValueOfstringstring>"
      text.appendElement("d3p1:Key", key)
      text.appendElement("d3p1:Value", value)
      text += "</d3p1:KeyValueOfstringstring>"
    }
    return text + "</\(name)>"
  }

  /// Decodes and validates the body of a POST; members that only the hub sets are absent.
  package static func decodeRequest(
    _ body: some Collection<UInt8>
  ) throws(WireFormatError) -> NotificationHubJob {
    let job = try decode(body)
    guard let isImport = job.kind.isImport, isImport == (job.importFileURI != nil),
      isPlace(job.outputContainerURI), job.importFileURI.map(isPlace) ?? true
    else { throw invalidPayload }
    return NotificationHubJob(
      kind: job.kind, outputContainerURI: job.outputContainerURI,
      importFileURI: job.importFileURI, inputProperties: job.inputProperties)
  }

  /// Whether the URI is absolute. This includes files on the server, which Belfry's operators can
  /// permit; such a URI has no host.
  private static func isPlace(_ uri: String) -> Bool {
    let isFile = uri.lowercased().hasPrefix("file:///")
    return (isFile ? "file://localhost" + uri.dropFirst(7) : uri).isAbsoluteURI
  }

  /// Decodes a job as a hub returns it.
  package static func decode(
    _ document: some Collection<UInt8>
  ) throws(WireFormatError) -> NotificationHubJob {
    guard let payload = AtomReader.payload(document) else { throw invalidPayload }
    return try NotificationHubJob(payload)
  }

  /// Decodes the list of a hub's jobs.
  package static func decodeFeed(
    _ document: some Collection<UInt8>
  ) throws(WireFormatError) -> [NotificationHubJob] {
    guard let entries = AtomReader.entries(document) else { throw invalidPayload }
    var jobs: [NotificationHubJob] = []
    for entry in entries {
      guard let payload = AtomReader.payload(entry) else { throw invalidPayload }
      jobs.append(try NotificationHubJob(payload))
    }
    return jobs
  }

  private init(_ node: XMLNode) throws(WireFormatError) {
    guard node.name == Self.root, let kind = node.word("Type"),
      let output = node.word("OutputContainerUri")
    else { throw Self.invalidPayload }
    let progress = Double(node.word("Progress") ?? "") ?? 0
    self.init(
      kind: Kind(rawValue: kind), outputContainerURI: output,
      importFileURI: node.word("ImportFileUri"), jobID: node.word("JobId"),
      status: Status(rawValue: node.word("Status") ?? Status.started.rawValue),
      progress: progress.isFinite ? min(max(progress, 0), 100) : 0,
      inputProperties: Self.map(node["InputProperties"]), failure: node.value("Failure"),
      outputProperties: Self.map(node["OutputProperties"]),
      createdAt: AtomReader.date(node.word("CreatedAt")),
      updatedAt: AtomReader.date(node.word("UpdatedAt")))
  }

  private static func map(_ node: XMLNode?) -> [String: String] {
    var map: [String: String] = [:]
    for item in node?.children ?? [] {
      if let key = item.word("Key") { map[key] = item.value("Value") ?? "" }
    }
    return map
  }
}
