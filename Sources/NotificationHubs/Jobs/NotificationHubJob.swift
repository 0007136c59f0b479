#if canImport(FoundationEssentials)
  public import FoundationEssentials
#else
  public import Foundation
#endif

/// Work on all registrations of a hub at once (spec `rest-api.md` section 7).
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
