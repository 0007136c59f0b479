import Wire

#if canImport(FoundationEssentials)
  public import FoundationEssentials
#else
  public import Foundation
#endif

/// Work on all registrations of a hub at once (docs/protocol/rest.md, section 7).
public struct NotificationHubJob: Hashable, Sendable {
  /// What a job does; a word newer than this build survives.
  public struct Kind: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
    public let rawValue: String
    public init(rawValue: String) { self.rawValue = rawValue }
    public var description: String { rawValue }
    /// Writes every registration to a file, one description on each line.
    public static let exportRegistrations = Kind(rawValue: "ExportRegistrations")
    public static let importCreateRegistrations = Kind(rawValue: "ImportCreateRegistrations")
    public static let importUpdateRegistrations = Kind(rawValue: "ImportUpdateRegistrations")
    public static let importUpsertRegistrations = Kind(rawValue: "ImportUpsertRegistrations")
    public static let importDeleteRegistrations = Kind(rawValue: "ImportDeleteRegistrations")

    /// Whether the job reads a file; `nil` for a word that is not known.
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

  /// Where a job stands; a word newer than this build survives.
  public struct Status: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
    public let rawValue: String
    public init(rawValue: String) { self.rawValue = rawValue }
    public var description: String { rawValue }
    /// Accepted.
    public static let started = Status(rawValue: "Started")
    public static let running = Status(rawValue: "Running")
    public static let completed = Status(rawValue: "Completed")
    public static let failed = Status(rawValue: "Failed")

    /// Nothing more will happen.
    public var isFinal: Bool { self == .completed || self == .failed }
  }

  /// Given by the hub.
  public var jobID: String?
  public var kind: Kind
  public var status: Status
  /// 0 to 100.
  public var progress: Double
  /// The URL of a container that the hub may write to, with what opens it.
  public var outputContainerURI: String
  /// The URL of the file to import, with what opens it; `nil` for an export.
  public var importFileURI: String?
  public var inputProperties: [String: String]
  /// Why the job failed.
  public var failure: String?
  public var outputProperties: [String: String]
  public var createdAt: Date?
  public var updatedAt: Date?

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

  /// The name of the output property that says where in the container the results are.
  public static let outputFilePath = "OutputFilePath"
  /// The name of the output property that says where in the container the failed lines are.
  public static let failedFilePath = "FailedFilePath"
}

extension NotificationHubJob {
  /// The sentence of the service for a job that it cannot take.
  package static let invalidPayload = WireFormatError(
    "The supplied notificationhub job payload is invalid")

  private static let root = "NotificationHubJob"

  /// The entry with which a hub answers.
  ///
  /// The id always stands below the address that was asked for, so that a GET of one job answers
  /// with the id twice, as the service does; `Content-Location` is the same address.
  /// - Parameter address: As the list, or the job, was asked for.
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

  /// The entry that a client sends.
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

  /// At most two digits after the point.
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

  /// Reads the body of a POST and checks it; what only the hub decides is absent.
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

  /// Also of a file on the server, which Belfry's operators can allow; such a URI has no host.
  private static func isPlace(_ uri: String) -> Bool {
    let isFile = uri.lowercased().hasPrefix("file:///")
    return (isFile ? "file://localhost" + uri.dropFirst(7) : uri).isAbsoluteURI
  }

  /// Reads a job as a hub returns it.
  package static func decode(
    _ document: some Collection<UInt8>
  ) throws(WireFormatError) -> NotificationHubJob {
    guard let payload = AtomReader.payload(document) else { throw invalidPayload }
    return try NotificationHubJob(payload)
  }

  /// Reads the list of a hub's jobs.
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
