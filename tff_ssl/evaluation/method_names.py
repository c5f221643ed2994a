"""Names of the methods of evaluation and their scores, known without TensorFlow."""

# Methods that have all labels together, and the one whose labels stay on clients.
ONE_ROUND = 'one_round'
METHODS = ('knn', 'linear', 'lars', ONE_ROUND, 'finetune')
FEDERATED_LINEAR = 'federated_linear'
# For two modalities: not a method of a single encoder, and without labels.
RETRIEVAL = 'retrieval'
# By masks of the images.
SEGMENTATION, DETECTION = 'segmentation', 'detection'
DENSE = (SEGMENTATION, DETECTION)
# What encoders read, evaluated itself: it has learned nothing. Then its principal
# components.
PIXELS, FEATURES = INPUTS = ('pixels', 'features')
COMPONENTS = ', PCA'
# Ends of the names of the numbers.
AUC = 'auc'
ACCURACY, BALANCED = SCORES = ('accuracy', 'balanced_accuracy')
# Settings that change numbers under the same name, as they are called beside these.
MEASURED_WITH = ('knn_k', 'finetune_steps', 'finetune_rate', 'supervised_steps')
# Of clients' own encoders, in addition to kNN.
PERSONAL = ('linear', 'lars', FEDERATED_LINEAR)
